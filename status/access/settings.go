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

// Roles are all of them.
var Roles = []string{RoleMetrics, RoleRead, RoleOperate}

// Access says who may use the page and the API. Without it weir listens on the
// loopback interface alone, where everybody may read and the weir command on the
// same machine may command.
type Access struct {
	// Anonymous is the permission without a login: read or none. The default is none
	// if tokens or a proxy are configured, otherwise read on the loopback interface.
	Anonymous string `yaml:"anonymous"`
	// WithoutTLS lets weir listen elsewhere than on the loopback interface without tls:
	// behind-proxy where a proxy in front has TLS, or insecure where no one else can
	// listen on the way.
	WithoutTLS string `yaml:"withoutTLS"`
	// Tokens let programs in, and people who paste one on the page. Where there are
	// any, commands on weir's own machine need one too, or --config and the right to
	// read the state directory.
	Tokens []Token `yaml:"tokens"`
	// Proxy is a proxy in front that identifies users, such as oauth2-proxy.
	Proxy Proxy `yaml:"proxy"`
	// Rules give roles to the users that the proxy names. The first matching rule
	// decides; a user without one has no permission.
	Rules []Rule `yaml:"rules"`
}

// Token is a user or program that shows a token.
type Token struct {
	// Name is the caller's on the page, in the history and in the log.
	Name string `yaml:"name"`
	// Role is metrics (/metrics alone), read, or operate: reconcile, suspend, resume
	// and approve as well.
	Role string `yaml:"role"`
	// File holds the token, of at least 32 characters; several, one a line, while one
	// is replaced. It is read at each use.
	File string `yaml:"file"`
}

// Proxy is a proxy in front that logs people in and passes on who they are.
type Proxy struct {
	// Addresses are the addresses that the proxy connects from, such as 10.0.1.7 or
	// 10.0.0.0/16. The guard ignores these headers from other addresses.
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

// Rule gives a role to users and to members of groups; to those who are one
// of either.
type Rule struct {
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

// OnLoopback reports whether an address to listen on is of this machine alone.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
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
