package access

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of the proxy's headers.
const (
	maxUser   = 256 // bytes of a user's name
	maxGroups = 1000
	maxGroup  = 256
)

var (
	errSeveralUsers = errors.New("the proxy sent more than one user")
	errBadUser      = errors.New("the proxy sent an invalid user name")
	errBadGroups    = errors.New("the proxy sent invalid group names, or too many")
)

// identity returns the user from headers that a proxy has set. A missing user is not an error.
func identity(h http.Header, userHeader, groupsHeader string) (user string, groups []string, err error) {
	switch users := h.Values(userHeader); {
	case len(users) == 0:
		return "", nil, nil
	case len(users) > 1:
		// One of them may come from the browser.
		return "", nil, errSeveralUsers
	default:
		user = strings.TrimSpace(users[0])
	}
	if user == "" {
		return "", nil, nil
	}
	if !isName(user, maxUser) {
		return "", nil, errBadUser
	}
	for _, line := range h.Values(groupsHeader) {
		for g := range strings.SplitSeq(line, ",") {
			if g = strings.TrimSpace(g); g == "" {
				continue
			}
			if len(groups) == maxGroups || !isName(g, maxGroup) {
				return "", nil, errBadGroups
			}
			groups = append(groups, g)
		}
	}
	return user, groups, nil
}

// isName reports whether a text is suitable as a name in a log and on a page.
func isName(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r)
	})
}

// peer returns the remote address of a request's connection.
func peer(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // a Unix socket
	}
	return at.Addr().Unmap().WithZone("")
}

// origin returns the client's address as far as weir can determine it: the address of the connection, or
// the address that the proxy reports.
func (p *Policy) origin(r *http.Request) netip.Addr {
	at := peer(r)
	if !p.trusts(at) {
		return at
	}
	lines := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(lines) - 1; i >= 0; i-- {
		ip, err := netip.ParseAddr(strings.TrimSpace(lines[i]))
		if err != nil {
			break
		}
		if ip = ip.Unmap().WithZone(""); !p.trusts(ip) {
			return ip
		}
	}
	return at
}

// proxied reports whether a request came through the proxy that identifies callers.
func (p *Policy) proxied(r *http.Request) (bool, error) {
	if !p.trusts(peer(r)) {
		return false, nil
	}
	if p.proxy.SecretFile == "" {
		return true, nil
	}
	sent := r.Header.Values(p.proxy.SecretHeader)
	if len(sent) != 1 {
		return false, nil
	}
	secrets, err := secretsOf(p.proxy.SecretFile)
	if err != nil {
		return false, err
	}
	ok := false
	for _, s := range secrets {
		ok = same(s, []byte(sent[0])) || ok
	}
	return ok, nil
}
