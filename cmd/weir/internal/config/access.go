package config

import (
	"cmp"
	"fmt"
	"net"
	"slices"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/status/access"
)

// TLS serves the page, the API and webhooks over HTTPS, with TLS 1.2 or newer.
type TLS struct {
	// CertFile holds the certificate in PEM, followed by the intermediate certificates. weir reads
	// it again when it changes.
	CertFile string `yaml:"certFile"`
	// KeyFile holds the certificate's private key in PEM. weir reads it again when it changes.
	KeyFile string `yaml:"keyFile"`
}

// Secure reports whether browsers reach the page over TLS.
func (c *Config) Secure() bool {
	return c.TLS.CertFile != "" || c.Access.WithoutTLS == access.BehindProxy
}

// accessDefaults sets the defaults of missing keys and makes paths absolute.
func accessDefaults(a *access.Access, base string) {
	for i := range a.Tokens {
		targetspec.Absolute(base, &a.Tokens[i].File)
	}
	p := &a.Proxy
	targetspec.Absolute(base, &p.SecretFile)
	if len(p.Addresses) > 0 {
		p.UserHeader, p.GroupsHeader = cmp.Or(p.UserHeader, access.DefaultUserHeader), cmp.Or(p.GroupsHeader, access.DefaultGroupsHeader)
		p.SecretHeader = cmp.Or(p.SecretHeader, access.DefaultSecretHeader)
	}
}

// access validates tls and access, which control who may use the page and the API.
func (v *validator) access() {
	c, a := v.config, v.config.Access
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		v.found.fault("tls", "missing-key", "", "certFile and keyFile go together")
	}
	v.listensSafely()
	if a.WithoutTLS != "" && c.TLS.CertFile != "" {
		v.found.fault("access.withoutTLS", "bad-value", "use only one of them", "there is tls")
	}
	v.accessProxy()
	for i, r := range a.Rules {
		if len(r.Users)+len(r.Groups) == 0 || slices.Contains(slices.Concat(r.Users, r.Groups), "") {
			v.found.fault(fmt.Sprintf("access.rules[%d]", i), "missing-key", `users: ["*"] means every caller that the proxy names`, "users or groups are required, none of them empty")
		}
	}
}

// listensSafely rejects a configuration that would give access to every client that can reach the address.
func (v *validator) listensSafely() {
	c := v.config
	if _, _, err := net.SplitHostPort(c.Listen); err != nil || access.OnLoopback(c.Listen) {
		return // or this was already reported
	}
	if c.TLS.CertFile == "" && c.Access.WithoutTLS == "" {
		v.found.fault("listen", "not-encrypted",
			"write tls: {certFile: …, keyFile: …}; or access: {withoutTLS: behind-proxy} if a proxy in front of weir terminates TLS; or listen: "+DefaultListen,
			"%s can be reached from other machines, and without TLS others can read and change the traffic", c.Listen)
	}
	if !c.Access.Named() && c.Access.Anonymous == "" {
		v.found.fault("listen", "not-guarded",
			"write access: {tokens: [{name: ops, role: operate, file: /etc/weir/ops-token}]}; or access: {anonymous: read} if everybody who can reach weir may read; or listen: "+DefaultListen,
			"%s can be reached from other machines, and nothing says who may read", c.Listen)
	}
}

// accessProxy validates access.proxy, and that rules and a proxy are configured together.
func (v *validator) accessProxy() {
	a, at := v.config.Access, "access.proxy"
	p := a.Proxy
	for i, text := range p.Addresses {
		prefix, err := access.ParsePrefix(text)
		entry := fmt.Sprintf("%s.addresses[%d]", at, i)
		switch {
		case err != nil:
			v.found.fault(entry, "bad-value", "write it like 10.0.1.7 or 10.0.0.0/16", "%q is not an address", text)
		case prefix.Bits() == 0 && p.SecretFile == "":
			v.found.fault(entry, "bad-value", "name the proxy's own addresses, or add secretFile", "%q is every address, so anybody could claim to be any user", text)
		}
	}
	switch {
	case v.found.written(at) && len(p.Addresses) == 0:
		v.found.fault(at+".addresses", "missing-key", "", "the addresses that the proxy connects from are required")
	case len(p.Addresses) > 0 && len(a.Rules) == 0:
		v.found.fault("access.rules", "missing-key", `such as rules: [{users: ["*"], role: read}]`, "no caller that the proxy names has a role")
	case len(p.Addresses) == 0 && len(a.Rules) > 0:
		v.found.fault("access.rules", "bad-value", "add proxy: {addresses: […]}; a token has its own role", "rules are for callers that a proxy names, and no proxy is configured")
	}
}
