package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/transport"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notPEM := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(notPEM, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := func(change func(*source.Config)) source.Config {
		c := source.Config{Name: "fleet", URL: "https://git.example/fleet.git", Dir: dir}
		change(&c)
		return c
	}
	tests := map[string]struct {
		cfg  source.Config
		want string
	}{
		"name":               {good(func(c *source.Config) { c.Name = "../x" }), "name must match"},
		"interval":           {good(func(c *source.Config) { c.Interval = -time.Second }), "negative"},
		"two refs":           {good(func(c *source.Config) { c.Ref = source.Ref{Branch: "a", Tag: "b"} }), "give one of"},
		"short commit":       {good(func(c *source.Config) { c.Ref = source.Ref{Commit: "abc1234"} }), "full object name"},
		"branch name":        {good(func(c *source.Config) { c.Ref = source.Ref{Branch: "a..b"} }), "not a valid name"},
		"branch with dash":   {good(func(c *source.Config) { c.Ref = source.Ref{Branch: "-x"} }), "not a valid name"},
		"branch that climbs": {good(func(c *source.Config) { c.Ref = source.Ref{Branch: "../../config"} }), "not a valid name"},
		"no mirror":          {good(func(c *source.Config) { c.Dir = "" }), "mirror directory is required"},
		"token and password": {good(func(c *source.Config) { c.Auth = transport.Auth{TokenFile: "a", PasswordFile: "b", Username: "u"} }), "exclude each other"},
		"password alone":     {good(func(c *source.Config) { c.Auth = transport.Auth{PasswordFile: "b"} }), "needs auth.username"},
		"username alone":     {good(func(c *source.Config) { c.Auth = transport.Auth{Username: "b"} }), "needs auth.passwordFile"},
		"auth for a path":    {good(func(c *source.Config) { c.URL, c.Auth = dir, transport.Auth{TokenFile: "a"} }), "for http(s)"},
		"missing CA":         {good(func(c *source.Config) { c.CAFile = filepath.Join(dir, "nope") }), "read caFile"},
		"CA without PEM":     {good(func(c *source.Config) { c.CAFile = notPEM }), "no PEM certificate"},
		"proxy scheme":       {good(func(c *source.Config) { c.Proxy = "ftp://proxy.example" }), "must be http"},
		"proxy secret":       {good(func(c *source.Config) { c.Proxy = "http://u:hunter2@proxy.example" }), "contains credentials"},
		"empty url":          {good(func(c *source.Config) { c.URL = "" }), "url is empty"},
		"dash":               {good(func(c *source.Config) { c.URL = "--upload-pack=touch x" }), "refused-url"},
		"ext helper":         {good(func(c *source.Config) { c.URL = "ext::sh -c touch% x" }), "refused-url"},
		"newline":            {good(func(c *source.Config) { c.URL = "https://git.example/a\nb" }), "control character"},
		"ssh":                {good(func(c *source.Config) { c.URL = "ssh://git@git.example/fleet.git" }), "auth.sshKeyFile is required"},
		"scp":                {good(func(c *source.Config) { c.URL = "git@git.example:fleet.git" }), "auth.sshKeyFile is required"},
		"git protocol":       {good(func(c *source.Config) { c.URL = "git://git.example/fleet.git" }), "has no encryption"},
		"other scheme":       {good(func(c *source.Config) { c.URL = "s3://bucket/fleet" }), "refused-url"},
		"other host's file":  {good(func(c *source.Config) { c.URL = "file://elsewhere/fleet.git" }), "another host"},
		"userinfo":           {good(func(c *source.Config) { c.URL = "https://bot:hunter2@git.example/fleet.git" }), "contains credentials"},
		"token as user":      {good(func(c *source.Config) { c.URL = "https://hunter2@git.example/fleet.git" }), "contains credentials"},
		"unparsable":         {good(func(c *source.Config) { c.URL = "https://bot:hunter2@git.example:x/fleet" }), "cannot be parsed"},
		"no path":            {good(func(c *source.Config) { c.URL = "https://git.example/" }), "needs a host and a path"},
		"query":              {good(func(c *source.Config) { c.URL = "https://git.example/f?token=hunter2" }), "no query"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := source.New(tt.cfg, source.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("New gave %v, want an error with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestNewGivesTypedErrors(t *testing.T) {
	t.Parallel()
	_, err := source.New(source.Config{Name: "fleet", URL: "git://git.example/x", Dir: t.TempDir()}, source.Options{})
	var ue *fault.UnavailableError
	if !errors.As(err, &ue) || ue.Reason != fault.Unsupported || ue.Source != "fleet" {
		t.Errorf("New gave %#v", err)
	}
}

func TestID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Run("forms of one repository", func(t *testing.T) {
		for _, group := range [][]string{
			{
				"https://github.com/acme/Fleet.git", "https://github.com/acme/Fleet", "https://github.com/acme/Fleet/", "http://github.com:8080/acme/Fleet.git",
				"https://bot:pw@GitHub.com/acme/Fleet.git", "ssh://git@github.com:2222/acme/Fleet.git", "git@github.com:acme/Fleet.git", "github.com:/acme/Fleet", "ssh://git@github.com/acme/Fleet.git/",
			},
			{dir, dir + "/", "file://" + dir, "file://localhost" + dir, dir + ".git", dir + "/.git"},
			{"fleet.git", "./fleet", "sub/../fleet.git"},
			{"ssh://git@[::1]/x.git", "git@[::1]:x", "https://[::1]:443/x"},
		} {
			for _, url := range group {
				if got, want := transport.ID(url), transport.ID(group[0]); got != want {
					t.Errorf("ID(%s) = %s, want %s as for %s", url, got, want, group[0])
				}
			}
		}
	})
	t.Run("different repositories", func(t *testing.T) {
		seen := map[string]string{}
		for _, url := range []string{"https://github.com/acme/fleet", "https://github.com/acme/Fleet", "https://github.example/acme/fleet", "https://github.com/acme/fleet/sub", "/acme/fleet", dir} {
			id := transport.ID(url)
			if len(id) != 12 || strings.Trim(id, "0123456789abcdef") != "" {
				t.Errorf("ID(%s) = %q, want 12 hex digits", url, id)
			}
			if other, ok := seen[id]; ok {
				t.Errorf("%s and %s have the same ID", url, other)
			}
			seen[id] = url
		}
	})
	// Fixed for ever: it is in the tags of AWS resources. printf github.com/acme/fleet | sha256sum
	if got, want := transport.ID("https://github.com/acme/fleet.git"), idOfAcmeFleet; got != want {
		t.Errorf("ID = %s, want %s", got, want)
	}
}

const idOfAcmeFleet = "8aab3e4485bd"

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://a/b", "git@h:p", "[::1]:x", "/p", "file:///p", "://", "a://b:c@d", "ext::x", "-x", "%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if id := transport.ID(url); len(id) != 12 {
			t.Errorf("ID(%q) = %q", url, id)
		}
		g, err := source.New(source.Config{Name: "f", URL: url, Dir: "unused"}, source.Options{})
		if (g == nil) == (err == nil) {
			t.Errorf("New(%q) = %v, %v", url, g, err)
		}
	})
}
