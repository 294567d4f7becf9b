package access

import (
	"net"
	"net/netip"
	"slices"
)

// The roles, the least first.
const (
	RoleMetrics = "metrics"
	RoleRead    = "read"
	RoleOperate = "operate"
)

// Roles lists all roles.
var Roles = []string{RoleMetrics, RoleRead, RoleOperate}

// Access configures who may use the page and the API. Without it weir listens only on the loopback
// interface, where everybody may read, and where the weir command on the same machine may run
// commands.
type Access struct {
	// Anonymous is the permission without a login: read or none. The default is none
	// if tokens or a proxy are configured, otherwise read on the loopback interface.
	Anonymous string `yaml:"anonymous"`
	// WithoutTLS allows weir to listen on other interfaces without tls: behind-proxy if a proxy in
	// front has TLS, or insecure if nobody else can read the traffic.
	WithoutTLS string `yaml:"withoutTLS"`
	// Tokens lists tokens for programs, and for people who log in on the page. With tokens,
	// commands on weir's own machine need a token too, or --config and permission to read the state
	// directory.
	Tokens []Token `yaml:"tokens"`
	// Proxy is a proxy in front of weir that identifies users, such as oauth2-proxy.
	Proxy Proxy `yaml:"proxy"`
	// Rules gives roles to the users that the proxy names. The first matching rule applies. A user
	// without a rule has no permission.
	Rules []Rule `yaml:"rules"`
}

// Token is a token of a user or program.
type Token struct {
	// Name identifies the caller on the page, in the history and in the log.
	Name string `yaml:"name"`
	// Role is metrics (only /metrics), read, or operate (read, and also reconcile, suspend, resume
	// and approve).
	Role string `yaml:"role"`
	// File holds the token, with at least 32 characters. While you replace a token, write the old
	// and the new one on separate lines. weir reads it at each use.
	File string `yaml:"file"`
}

// Proxy is a proxy in front of weir that authenticates users and forwards their names.
type Proxy struct {
	// Addresses lists the addresses from which the proxy connects, such as 10.0.1.7 or
	// 10.0.0.0/16. weir ignores the headers below from other addresses.
	Addresses []string `yaml:"addresses"`
	// UserHeader is the header with the name of the user. The proxy must remove this header from
	// requests of browsers.
	UserHeader string `yaml:"userHeader"`
	// GroupsHeader is the header with the user's groups, separated by commas.
	GroupsHeader string `yaml:"groupsHeader"`
	// SecretFile holds a secret of at least 32 characters that the proxy must send in
	// secretHeader. weir reads it at each use.
	SecretFile string `yaml:"secretFile"`
	// SecretHeader is the header with the secret of secretFile.
	SecretHeader string `yaml:"secretHeader"`
}

// Rule gives a role to users and to members of groups.
type Rule struct {
	// Users lists names of users as the proxy sends them. * matches every user.
	Users []string `yaml:"users"`
	// Groups lists names of groups as the proxy sends them.
	Groups []string `yaml:"groups"`
	// Role is metrics, read or operate.
	Role string `yaml:"role"`
}

// Defaults of a proxy's headers.
const (
	DefaultUserHeader   = "X-Forwarded-User"
	DefaultGroupsHeader = "X-Forwarded-Groups"
	DefaultSecretHeader = "X-Weir-Proxy-Secret"
	// AnonymousNone and AnonymousRead are the permissions without a login.
	AnonymousNone = "none"
	AnonymousRead = RoleRead
	// BehindProxy and Insecure are the reasons for running without TLS.
	BehindProxy = "behind-proxy"
	Insecure    = "insecure"
)

// Named reports whether callers are distinguished: by a token or by a proxy.
func (a Access) Named() bool { return len(a.Tokens) > 0 || len(a.Proxy.Addresses) > 0 }

// Files lists the files with tokens and secrets.
func (a Access) Files() []string {
	var out []string
	for _, t := range a.Tokens {
		out = append(out, t.File)
	}
	return slices.DeleteFunc(append(out, a.Proxy.SecretFile), func(f string) bool { return f == "" })
}

// OnLoopback reports whether an address to listen on is reachable only from this machine.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ParsePrefix parses an address or a CIDR range.
func ParsePrefix(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		ip = ip.Unmap().WithZone("")
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
