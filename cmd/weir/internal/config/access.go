package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/target"
)

// TLS has the page, the API and webhooks served over HTTPS, with TLS 1.2 or newer.
type TLS struct {
	// CertFile holds the certificate in PEM, followed by those of the authorities
	// between it and the root. It is read again when it changes.
	CertFile string `yaml:"certFile"`
	// KeyFile holds the certificate's private key in PEM. It is read again when it
	// changes.
	KeyFile string `yaml:"keyFile"`
}

// The roles, the least first.
const (
	RoleMetrics = "metrics"
	RoleRead    = "read"
	RoleOperate = "operate"
)

var roles = []string{RoleMetrics, RoleRead, RoleOperate}

// Access says who may use the page and the API. Without it weir listens on the
// loopback interface alone, where everybody may read and the weir command on the
// same machine may command.
type Access struct {
	// Anonymous is what may be done without a login: read or none. Without it, none
	// where there are tokens or a proxy, else read on the loopback interface.
	Anonymous string `yaml:"anonymous"`
	// WithoutTLS lets weir listen elsewhere than on the loopback interface without tls:
	// behind-proxy where a proxy in front has TLS, or insecure where nobody else can
	// listen on the way.
	WithoutTLS string `yaml:"withoutTLS"`
	// Tokens let programs in, and people who paste one on the page. Where there are
	// any, commands on weir's own machine need one too, or --config and the right to
	// read the state directory.
	Tokens []AccessToken `yaml:"tokens"`
	// Proxy is a proxy in front that says who asks, such as oauth2-proxy.
	Proxy AccessProxy `yaml:"proxy"`
	// Rules give roles to those whom the proxy names. The first that fits counts;
	// where none does, nothing may be done.
	Rules []AccessRule `yaml:"rules"`
}

// AccessToken is somebody who shows a token.
type AccessToken struct {
	// Name is what they are called on the page, in the history and in the log.
	Name string `yaml:"name"`
	// Role is metrics (/metrics alone), read, or operate: reconcile, suspend, resume
	// and approve as well.
	Role string `yaml:"role"`
	// File holds the token, of at least 32 characters; several, one a line, while one
	// is replaced. It is read at each use.
	File string `yaml:"file"`
}

// AccessProxy is a proxy in front that logs people in and passes on who they are.
type AccessProxy struct {
	// Addresses are those that the proxy connects from, such as 10.0.1.7 or
	// 10.0.0.0/16. What others say about who they are is not heard.
	Addresses []string `yaml:"addresses"`
	// UserHeader names the user, X-Forwarded-User if left out. The proxy must take it
	// out of what browsers send.
	UserHeader string `yaml:"userHeader"`
	// GroupsHeader names the user's groups, with commas between them,
	// X-Forwarded-Groups if left out.
	GroupsHeader string `yaml:"groupsHeader"`
	// SecretFile holds a secret of at least 32 characters that the proxy must send
	// too, in secretHeader. It is read at each use.
	SecretFile string `yaml:"secretFile"`
	// SecretHeader is X-Weir-Proxy-Secret if left out.
	SecretHeader string `yaml:"secretHeader"`
}

// AccessRule gives a role to users and to members of groups; to those who are one
// of either.
type AccessRule struct {
	// Users are names as the proxy says them; * stands for everybody whom it names.
	Users  []string `yaml:"users"`
	Groups []string `yaml:"groups"`
	// Role is metrics, read or operate.
	Role string `yaml:"role"`
}

// Defaults of a proxy's headers.
const (
	DefaultUserHeader   = "X-Forwarded-User"
	DefaultGroupsHeader = "X-Forwarded-Groups"
	DefaultSecretHeader = "X-Weir-Proxy-Secret"
	// AnonymousNone and AnonymousRead are what may be done without a login.
	AnonymousNone = "none"
	AnonymousRead = RoleRead
	// BehindProxy and Insecure are why there is no TLS.
	BehindProxy = "behind-proxy"
	Insecure    = "insecure"
)

// Named reports whether somebody is told apart: by a token or by a proxy.
func (a Access) Named() bool { return len(a.Tokens) > 0 || len(a.Proxy.Addresses) > 0 }

// Files are those with tokens and secrets.
func (a Access) Files() []string {
	var out []string
	for _, t := range a.Tokens {
		out = append(out, t.File)
	}
	return present(append(out, a.Proxy.SecretFile)...)
}

// OnLoopback reports whether an address to listen on is of this machine alone.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Secure reports whether browsers reach the page over TLS.
func (c *Config) Secure() bool { return c.TLS.CertFile != "" || c.Access.WithoutTLS == BehindProxy }

func (a *Access) setDefaults(base string) {
	for i := range a.Tokens {
		target.Absolute(base, &a.Tokens[i].File)
	}
	p := &a.Proxy
	target.Absolute(base, &p.SecretFile)
	if len(p.Addresses) > 0 {
		p.UserHeader, p.GroupsHeader = cmp.Or(p.UserHeader, DefaultUserHeader), cmp.Or(p.GroupsHeader, DefaultGroupsHeader)
		p.SecretHeader = cmp.Or(p.SecretHeader, DefaultSecretHeader)
	}
}

// headerPattern are names of headers that no other part of a request uses.
var headerPattern = regexp.MustCompile(`^[Xx]-[A-Za-z0-9-]{1,62}$|^[Rr]emote-[A-Za-z0-9-]{1,62}$`)

func (v *validator) access() {
	c, a := v.config, v.config.Access
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		v.fault("tls", "missing-key", "", "certFile and keyFile go together")
	}
	v.listensSafely()
	if a.Anonymous != "" && a.Anonymous != AnonymousRead && a.Anonymous != AnonymousNone {
		v.fault("access.anonymous", "bad-value", "", "want %s or %s, got %q", AnonymousNone, AnonymousRead, a.Anonymous)
	}
	if a.WithoutTLS != "" && a.WithoutTLS != BehindProxy && a.WithoutTLS != Insecure {
		v.fault("access.withoutTLS", "bad-value", "", "want %s or %s, got %q", BehindProxy, Insecure, a.WithoutTLS)
	}
	if a.WithoutTLS != "" && c.TLS.CertFile != "" {
		v.fault("access.withoutTLS", "bad-value", "leave one of them out", "there is tls")
	}
	names := map[string]string{}
	for i, t := range a.Tokens {
		at := fmt.Sprintf("access.tokens[%d]", i)
		v.name(at+".name", t.Name, names)
		v.role(at+".role", t.Role)
		if t.File == "" {
			v.fault(at+".file", "missing-key", "openssl rand -hex 32 makes a good token", "a file with the token is required")
		}
	}
	v.accessProxy()
	for i, r := range a.Rules {
		at := fmt.Sprintf("access.rules[%d]", i)
		v.role(at+".role", r.Role)
		if len(r.Users)+len(r.Groups) == 0 || slices.Contains(slices.Concat(r.Users, r.Groups), "") {
			v.fault(at, "missing-key", `users: ["*"] stands for everybody whom the proxy names`, "users or groups are required, none of them empty")
		}
	}
}

// listensSafely refuses what would let anybody in who can reach the address.
func (v *validator) listensSafely() {
	c := v.config
	if _, _, err := net.SplitHostPort(c.Listen); err != nil || OnLoopback(c.Listen) {
		return // or it has been said
	}
	if c.TLS.CertFile == "" && c.Access.WithoutTLS == "" {
		v.fault("listen", "not-encrypted",
			"write tls: {certFile: …, keyFile: …}; or access: {withoutTLS: behind-proxy} where a proxy in front has TLS; or listen: "+DefaultListen,
			"%s can be reached from other machines, and without TLS what is sent can be read and changed on its way", c.Listen)
	}
	if !c.Access.Named() && c.Access.Anonymous == "" {
		v.fault("listen", "not-guarded",
			"write access: {tokens: [{name: ops, role: operate, file: /etc/weir/ops-token}]}; or access: {anonymous: read} where everybody who reaches weir may read; or listen: "+DefaultListen,
			"%s can be reached from other machines, and nothing says who may read", c.Listen)
	}
}

func (v *validator) role(at, role string) {
	if !slices.Contains(roles, role) {
		v.fault(at, "bad-value", "", "want %s, %s or %s, got %q", RoleMetrics, RoleRead, RoleOperate, role)
	}
}

func (v *validator) accessProxy() {
	a, at := v.config.Access, "access.proxy"
	p := a.Proxy
	for i, text := range p.Addresses {
		prefix, err := ParsePrefix(text)
		place := fmt.Sprintf("%s.addresses[%d]", at, i)
		switch {
		case err != nil:
			v.fault(place, "bad-value", "write it like 10.0.1.7 or 10.0.0.0/16", "%q is no address", text)
		case prefix.Bits() == 0 && p.SecretFile == "":
			v.fault(place, "bad-value", "name the proxy's own addresses, or add secretFile", "%q is every address: anybody could say who they are", text)
		}
	}
	for _, h := range []struct{ key, name string }{{"userHeader", p.UserHeader}, {"groupsHeader", p.GroupsHeader}, {"secretHeader", p.SecretHeader}} {
		if h.name != "" && !headerPattern.MatchString(h.name) {
			v.fault(at+"."+h.key, "bad-value", "it begins with X- or Remote-", "%q is no name of a header for this", h.name)
		}
	}
	_, written := v.decoder.at[at]
	switch {
	case written && len(p.Addresses) == 0:
		v.fault(at+".addresses", "missing-key", "", "the addresses that the proxy connects from are required")
	case len(p.Addresses) > 0 && len(a.Rules) == 0:
		v.fault("access.rules", "missing-key", `such as rules: [{users: ["*"], role: read}]`, "nobody whom the proxy names has a role")
	case len(p.Addresses) == 0 && len(a.Rules) > 0:
		v.fault("access.rules", "bad-value", "add proxy: {addresses: […]}; a token has its role beside it", "rules are for those whom a proxy names, and there is none")
	}
}

// ParsePrefix reads an address, or several as CIDR.
func ParsePrefix(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		ip = ip.Unmap().WithZone("")
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
