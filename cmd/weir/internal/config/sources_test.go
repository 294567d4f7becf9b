package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestEveryFileOfASource finds each file that a source names in one of the lists
// by which its content is hidden, watched, or part of the connection, and sees
// that its path became absolute.
func TestEveryFileOfASource(t *testing.T) {
	t.Parallel()
	var s Source
	var fill func(v reflect.Value, path string) []string
	fill = func(v reflect.Value, path string) (out []string) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch {
			case v.Type().Field(i).Anonymous:
				out = append(out, fill(f, path)...)
			case f.Kind() == reflect.Struct:
				out = append(out, fill(f, path+name)...)
			case strings.HasSuffix(name, "File"):
				f.SetString(path + name)
				out = append(out, path+name)
			case strings.HasSuffix(name, "Files"):
				f.Set(reflect.ValueOf([]string{path + name}))
				out = append(out, path+name)
			}
		}
		return out
	}
	names := fill(reflect.ValueOf(&s).Elem(), "")
	if len(names) < 11 {
		t.Fatalf("only %d files", len(names))
	}
	base := t.TempDir()
	s.setDefaults(base)
	known := map[string]bool{}
	for _, f := range append(s.WatchedFiles(), s.ConnectionFiles()...) {
		known[f] = true
	}
	secret := map[string]bool{}
	for _, f := range append(s.SecretFiles(), s.KeyFiles()...) {
		secret[f] = true
	}
	public := map[string]bool{"CAFile": true, "ClientCertCertFile": true, "AuthKnownHostsFile": true, "VerifyPGPKeyFiles": true, "VerifySSHAllowedSignersFile": true}
	for _, name := range names {
		file := filepath.Join(base, name)
		if !known[file] {
			t.Errorf("a change of %s is not noticed", name)
		}
		if secret[file] == public[name] {
			t.Errorf("%s: secret %t, want %t", name, secret[file], !public[name])
		}
	}
}

func TestForgeWithTheAppOfItsSource(t *testing.T) {
	t.Parallel()
	text := sources("{name: a, url: 'https://github.com/Acme/fleet.git', auth: {githubApp: {appID: 4711, privateKeyFile: k}}, verify: {ssh: {allowedSignersFile: s}}}") + "forges: [{type: github, url: 'https://github.com/acme/fleet', source: a}]\n"
	c, faults := Parse("/etc/weir/weir.yaml", []byte(text), Env{Getenv: os.Getenv})
	if c == nil {
		t.Fatal(faults)
	}
	s := c.Sources[0]
	if s.Auth.GitHubApp.AppID != "4711" || s.Auth.GitHubApp.PrivateKeyFile != "/etc/weir/k" || s.Verify.Mode != "commit" || s.Verify.SSH.AllowedSignersFile != "/etc/weir/s" {
		t.Errorf("%+v", s)
	}
}
