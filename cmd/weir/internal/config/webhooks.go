package config

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/weir-gitops/weir/status/events/kinds"
)

// Notify is where events are sent to, signed, as they happen.
type Notify struct {
	// URL takes a POST with JSON for each event. Redirects are not followed.
	URL string `yaml:"url"`
	// SecretFile holds what the events are signed with, of at least 16 characters. It
	// is read for each.
	SecretFile string `yaml:"secretFile"`
	// Events are the kinds of events that are sent; all if there are none.
	Events []string `yaml:"events"`
}

// WebhookFiles are the files that hold secrets of webhooks, in and out.
func (c *Config) WebhookFiles() []string {
	var out []string
	for _, f := range c.Forges {
		out = append(out, f.WebhookSecretFile)
	}
	for _, n := range c.Notify {
		out = append(out, n.SecretFile)
	}
	return present(out...)
}

// generic checks a forge that gives webhooks only.
func (v *validator) generic(at string, f *Forge) {
	if f.TokenFile != "" {
		v.fault(at+".tokenFile", "bad-value", "name the forge's own type for commit statuses", "a generic forge takes webhooks only, and needs no token")
	}
	if f.WebhookSecretFile == "" {
		v.fault(at+".webhookSecretFile", "missing-key", "openssl rand -hex 32 makes a good secret", "a file with the secret of the webhooks is required")
	}
}

// notify checks where events are sent to. It does not show the secret parts of an
// address, and much of one may be secret.
func (v *validator) notify() {
	taken := map[string]int{}
	for i := range v.config.Notify {
		n, at := &v.config.Notify[i], fmt.Sprintf("notify[%d]", i)
		u, err := url.Parse(n.URL)
		switch first, twice := taken[n.URL]; {
		case n.URL == "":
			v.fault(at+".url", "missing-key", "", "an address is required")
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "":
			v.fault(at+".url", "bad-value", "write it like https://hooks.example.com/weir", "this is no http(s) address")
		case u.User != nil:
			v.fault(at+".url", "bad-value", "the receiver knows weir by the signature", "the address carries credentials, which are not kept in the configuration")
		case twice:
			v.fault(at+".url", "duplicate-name", "", "notify[%d] has the same address", first)
		}
		taken[n.URL] = i
		if n.SecretFile == "" {
			v.fault(at+".secretFile", "missing-key", "openssl rand -hex 32 makes a good secret", "a file with the secret for signatures is required")
		}
		for j, kind := range n.Events {
			if !slices.Contains(kinds.All(), kind) {
				v.fault(fmt.Sprintf("%s.events[%d]", at, j), "bad-value", "/api/v1/events shows events with their kinds", "there is no kind of event %q", kind)
			}
		}
	}
}
