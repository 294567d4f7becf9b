// Package access decides who may use the page and the API, and guards both.
//
// A Guard protects everything that the daemon serves, except webhooks, which prove themselves. For
// each request it identifies the caller: by a bearer token, by a session that a token started in a
// browser, or by the headers of a proxy that the configuration names. The role comes from the
// configuration and is read again for every request; it decides which requests pass. Code behind
// the guard calls CallerOf.
//
// Tokens and secrets are read from their files at each use, are compared in constant time, and are
// in no log and no answer.
package access

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
)

// Role is a caller's permission; each role includes those before it.
type Role int

// Roles.
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

// String is the name in the configuration.
func (r Role) String() string {
	return [...]string{"none", RoleMetrics, RoleRead, RoleOperate}[r]
}

// Means is the way in which a caller proved their identity.
type Means string

// Means of proving it. Nobody, the caller without proof, is unnamed.
const (
	Nobody    Means = ""
	ByToken   Means = "token"
	BySession Means = "session"
	ByProxy   Means = "proxy"
	// ByState is a user of weir's machine who can read its state directory.
	ByState Means = "state directory"
)

// Caller is the sender of a request. The zero value is an unknown caller without any permission.
type Caller struct {
	Name  string
	Means Means
	Role  Role
	// bound identifies what the tokens of this caller's forms are bound to: a session, a user of
	// the proxy, or a browser that has not logged in.
	bound string
	// signed reads a body that the caller may send, and fails where another one was
	// signed; nil where it was read, or needs no signature.
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
	// anonymous is the role without a login.
	anonymous Role
	// local says that programs on this machine may command without a login, and that nothing else
	// identifies the caller.
	local bool
	// ownHost says that requests under another name than this machine's are refused.
	ownHost bool
	// secure says that browsers come over TLS.
	secure bool
}

// NewPolicy reads settings that have been checked. Secure says that browsers come over
// TLS, and loopback that weir listens for this machine alone.
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
		// A page elsewhere could point its own name to this machine and read what
		// is meant for this machine alone.
		p.anonymous, p.ownHost = Read, true
	}
	return p
}

// local reports whether programs on weir's own machine command without a login.
func (p *Policy) Local() bool { return p.local }

// roleOf is the role of a user whom the proxy names: that of the first rule that fits.
func (p *Policy) roleOf(user string, groups []string) Role {
	for _, r := range p.rules {
		if slices.Contains(r.Users, "*") || slices.Contains(r.Users, user) ||
			slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(groups, g) }) {
			return roleOf(r.Role)
		}
	}
	return None
}

// trusts reports whether an address is the proxy's.
func (p *Policy) trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(p.from, func(f netip.Prefix) bool { return f.Contains(ip) })
}
