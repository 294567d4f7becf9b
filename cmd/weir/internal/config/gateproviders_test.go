package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func parseProviders(t *testing.T, providers string) (*Config, string) {
	t.Helper()
	c, faults := Parse("/etc/weir/w.yaml", []byte("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: u}]\ntargets: [{name: t, region: eu-west-1}]\ngateProviders:\n"+providers), env)
	var all []string
	for _, f := range faults {
		all = append(all, f.String())
	}
	return c, strings.Join(all, "\n")
}

func TestGateProviders(t *testing.T) {
	c, faults := parseProviders(t, "- {name: main, type: prometheus, url: https://prometheus.example.com/tenant, tokenFile: token, caFile: /ca.pem}\n- {name: other, type: prometheus, url: http://127.0.0.1:9090, username: weir, passwordFile: password}\n")
	if c == nil {
		t.Fatal(faults)
	}
	want := []GateProvider{
		{Name: "main", Type: Prometheus, URL: "https://prometheus.example.com/tenant", TokenFile: "/etc/weir/token", CAFile: "/ca.pem"},
		{Name: "other", Type: Prometheus, URL: "http://127.0.0.1:9090", Username: "weir", PasswordFile: "/etc/weir/password"},
	}
	if !slices.Equal(c.GateProviders, want) || !slices.Equal(c.GateProviderFiles(), []string{"/etc/weir/token", "/etc/weir/password"}) {
		t.Errorf("%+v, files %v", c.GateProviders, c.GateProviderFiles())
	}
	for in, want := range map[string]string{
		"{name: a, type: datadog, url: https://h}":                                                   `gateProviders[0].type: want prometheus, got "datadog"`,
		"{type: prometheus, url: https://h}":                                                         "a name is required",
		"{name: a, type: prometheus}":                                                                "the server's address is required",
		"{name: a, url: https://h}":                                                                  "gateProviders[0].type",
		"{name: a, type: prometheus, url: prometheus}":                                               "not an http(s) address",
		"{name: a, type: prometheus, url: 'https://u:hunter2@h'}":                                    "contains credentials",
		"{name: a, type: prometheus, url: 'https://h?token=hunter2'}":                                "not an http(s) address",
		"{name: a, type: prometheus, url: https://h, token: x}":                                      "unknown key",
		"{name: a, type: prometheus, url: https://h, tokenFile: t, username: u, passwordFile: p}":    "tokenFile and passwordFile are both set",
		"{name: a, type: prometheus, url: https://h, username: u}":                                   "username is set without passwordFile",
		"{name: a, type: prometheus, url: https://h, passwordFile: p}":                               "passwordFile is set without username",
		"{name: a, type: prometheus, url: https://h}\n- {name: a, type: prometheus, url: https://h}": `"a" is the name of gateProviders[0]`,
	} {
		c, faults := parseProviders(t, "- "+in+"\n")
		if c != nil || !strings.Contains(faults, want) || strings.Contains(faults, "hunter2") {
			t.Errorf("%s: %s\nwant %s", in, faults, want)
		}
	}
}

// The files of a provider are credentials, and so nobody else's to read.
func TestFilesOfGateProviders(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "secret")
	if err := os.Chmod(token, 0o644); err != nil {
		t.Fatal(err)
	}
	looks := env
	looks.Files = true
	_, faults := Parse("/etc/weir/w.yaml", []byte("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: u}]\ntargets: [{name: t, region: eu-west-1}]\ngateProviders: [{name: a, type: prometheus, url: https://h, tokenFile: "+token+"}]\n"), looks)
	found := false
	for _, f := range faults {
		found = found || strings.Contains(f.String(), "can be read by everybody")
	}
	if !found {
		t.Errorf("%v", faults)
	}
}
