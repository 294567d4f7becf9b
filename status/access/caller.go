package access

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sessionFor is the lifetime of a login.
const sessionFor = 12 * time.Hour

var (
	errBadToken = errors.New("the token is unknown")
	errTooMany  = errors.New("too many tries")
)

// caller identifies the caller of a request. The error describes an invalid credential, and contains no
// part of it. The duration is the time that the caller must wait.
func (g *Guard) caller(p *Policy, r *http.Request) (Caller, time.Duration, error) {
	through, err := p.proxied(r)
	if err != nil {
		g.log.Error("the secret of the proxy cannot be used", "error", err)
	}
	if through {
		user, groups, err := identity(r.Header, p.proxy.UserHeader, p.proxy.GroupsHeader)
		if err != nil {
			return Caller{}, 0, err
		}
		if user != "" {
			return Caller{Name: user, Means: ByProxy, Role: p.roleOf(user, groups), bound: "proxy\x00" + user}, 0, nil
		}
	}
	switch kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); {
	case strings.EqualFold(kind, "Bearer"):
		return g.byToken(p, r, strings.TrimSpace(token))
	case kind == proofScheme:
		c, err := g.byProof(p, r, token)
		return c, 0, err
	}
	if c, ok := g.bySession(p, r); ok {
		return c, 0, nil
	}
	c := Caller{Role: p.anonymous}
	if visit, err := r.Cookie(p.cookie("visit")); err == nil && visit.Value != "" {
		c.bound = "visit\x00" + visit.Value
	}
	return c, 0, nil
}

// byToken finds the owner of a token. After too many wrong tokens, an address must wait before another
// wrong token is answered. A correct token always works, because several users may share an address, and a
// token is too long to be guessed.
func (g *Guard) byToken(p *Policy, r *http.Request, token string) (Caller, time.Duration, error) {
	t, ok, faulty := p.find([]byte(token))
	for _, err := range faulty {
		g.log.Error("a token cannot be used", "error", err)
	}
	if !ok {
		from := network(p.origin(r))
		if wait := g.failed.try(from); wait > 0 {
			return Caller{}, wait, errTooMany
		}
		g.log.Warn("a token was refused", "address", from)
		return Caller{}, 0, errBadToken
	}
	return Caller{Name: t.Name, Means: ByToken, Role: roleOf(t.Role)}, 0, nil
}

// bySession finds the owner of a session. The role comes from the current configuration.
func (g *Guard) bySession(p *Policy, r *http.Request) (Caller, bool) {
	cookie, err := r.Cookie(p.cookie(""))
	if err != nil {
		return Caller{}, false
	}
	var s session
	if !g.seals.open("session", cookie.Value, &s) || !g.runs(s) || g.ended.has(s.ID, g.now()) {
		return Caller{}, false
	}
	t, ok := p.tokenByMark(s.Name, g.seals.mark, s.Mark)
	if !ok {
		return Caller{}, false
	}
	return Caller{Name: t.Name, Means: BySession, Role: roleOf(t.Role), bound: "session\x00" + s.ID}, true
}

// runs reports whether a session is still valid. It rejects a session with a lifetime above the maximum,
// because that was created while the clock was ahead.
func (g *Guard) runs(s session) bool {
	left := time.Unix(s.Expires, 0).Sub(g.now())
	return left > 0 && left <= sessionFor+time.Minute
}

// cookie returns the name of a cookie. Over TLS, its prefix prevents other hosts from setting it.
func (p *Policy) cookie(suffix string) string {
	name := "weir"
	if suffix != "" {
		name += "-" + suffix
	}
	if p.secure {
		return "__Host-" + name
	}
	return name
}

// set sets a cookie; a negative age deletes it.
func (p *Policy) set(rw http.ResponseWriter, suffix, value string, age time.Duration) {
	seconds := int(age / time.Second)
	if age < 0 {
		seconds = -1
	}
	http.SetCookie(rw, &http.Cookie{
		Name: p.cookie(suffix), Value: value, Path: "/", MaxAge: seconds, Secure: p.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// ended contains the sessions that were logged out, until they would have expired. A restart forgets them,
// but the logout has also deleted the cookies.
type ended struct {
	mu  sync.Mutex
	ids map[string]time.Time
}

func (e *ended) add(id string, until, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids == nil {
		e.ids = map[string]time.Time{}
	}
	for id, until := range e.ids {
		if !now.Before(until) {
			delete(e.ids, id)
		}
	}
	e.ids[id] = until
}

func (e *ended) has(id string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.ids[id])
}
