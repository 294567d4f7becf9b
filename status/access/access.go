// Package access controls the access to the page and the API.
//
// A Guard protects everything that the daemon serves, except webhooks, which have their own authentication.
// For each request, it identifies the caller: by a bearer token, by a session that a token started in a
// browser, or by the headers of a configured proxy. The caller's role is looked up in the configuration for
// every request, and decides whether the request passes. Code behind the guard calls CallerOf.
//
// Tokens and secrets are read from their files at each use and compared in constant time. They never appear
// in a log or a response.
package access

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
)

// Role is a caller's permission; each role includes those before it.
type Role int

// The roles.
const (
	None Role = iota
	Metrics
	Read
	Operate
)

func roleOf(word string) Role {
	switch word {
	case RoleMetrics:
		return Metrics
	case RoleRead:
		return Read
	case RoleOperate:
		return Operate
	default:
		return None
	}
}

// String returns the name of the role in the configuration.
func (r Role) String() string {
	return [...]string{"none", RoleMetrics, RoleRead, RoleOperate}[r]
}

// Means is the way in which a caller was authenticated.
type Means string

// The ways of authentication. Nobody means that the caller was not authenticated.
const (
	Nobody    Means = ""
	ByToken   Means = "token"
	BySession Means = "session"
	ByProxy   Means = "proxy"
	// ByState means a user of weir's machine who can read its state directory.
	ByState Means = "state directory"
)

// Caller is the sender of a request. The zero value is an unknown caller without permissions.
type Caller struct {
	Name  string
	Means Means
	Role  Role
	// bound identifies the owner of form tokens: a session, a user of the proxy, or a browser without a
	// login.
	bound string
	// signed reads the body of a permitted request, and returns an error if its signature does not match.
	// It is nil if the body was already read, or needs no signature.
	signed func(*http.Request) error
}

type callerKey struct{}

// CallerOf returns the caller of a request that came through a Guard.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Policy is the access part of a configuration. It is immutable.
type Policy struct {
	tokens []Token
	proxy  Proxy
	// from are the addresses of the proxy.
	from  []netip.Prefix
	rules []Rule
	// anonymous is the role of callers without a login.
	anonymous Role
	// local says that programs on this machine may run commands without a login, because no callers can be
	// identified.
	local bool
	// ownHost says that requests are refused if their Host header is not a name of this machine.
	ownHost bool
	// secure says that browsers connect over TLS.
	secure bool
}

// NewPolicy returns the policy for validated settings. secure says that browsers connect over TLS, and
// loopback that weir listens only on the loopback interface.
func NewPolicy(a Access, secure, loopback bool) *Policy {
	p := &Policy{tokens: a.Tokens, proxy: a.Proxy, rules: a.Rules, secure: secure, local: !a.Named()}
	for _, text := range a.Proxy.Addresses {
		if prefix, err := ParsePrefix(text); err == nil {
			p.from = append(p.from, prefix)
		}
	}
	switch {
	case a.Anonymous == AnonymousRead:
		p.anonymous = Read
	case a.Anonymous == "" && !a.Named() && loopback:
		// A page elsewhere could point its own host name to this machine, and read data that is meant only
		// for this machine.
		p.anonymous, p.ownHost = Read, true
	}
	return p
}

// Local reports whether programs on weir's own machine may run commands without a login.
func (p *Policy) Local() bool { return p.local }

// roleOf returns the role of a user that the proxy names, from the first matching rule.
func (p *Policy) roleOf(user string, groups []string) Role {
	for _, r := range p.rules {
		if slices.Contains(r.Users, "*") || slices.Contains(r.Users, user) ||
			slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(groups, g) }) {
			return roleOf(r.Role)
		}
	}
	return None
}

// trusts reports whether an address belongs to the proxy.
func (p *Policy) trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(p.from, func(f netip.Prefix) bool { return f.Contains(ip) })
}
