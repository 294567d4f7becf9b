package access

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/page"
)

// saidFor is the maximum time that a browser stores the result of an action before a page shows it.
const saidFor = time.Minute

// loginAddress returns the address of the login page, which then redirects to back.
func loginAddress(back *url.URL) string {
	return loginPath + "?" + url.Values{"back": {back.RequestURI()}}.Encode()
}

// local returns text if it is a path on weir's own host, otherwise "/".
func local(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") || len(text) > 2048 {
		return "/"
	}
	return u.RequestURI()
}

// login shows the form for a token, or processes it.
func (g *Guard) login(p *Policy, c Caller, rw http.ResponseWriter, r *http.Request) {
	if len(p.tokens) == 0 {
		g.refuse(rw, r, http.StatusNotFound, "no login is configured", "access in the configuration defines who may do what")
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		g.showLogin(p, c, rw, http.StatusOK, local(r.URL.Query().Get("back")), "")
	case http.MethodPost:
		g.takeLogin(p, c, rw, r)
	default:
		rw.Header().Set("Allow", "GET, HEAD, POST")
		g.refuse(rw, r, http.StatusMethodNotAllowed, "this is a form", "open it in a browser")
	}
}

func (g *Guard) showLogin(p *Policy, c Caller, rw http.ResponseWriter, code int, back, problem string) {
	if c.bound == "" {
		visit := random()
		p.set(rw, "visit", visit, sessionFor)
		c.bound = "visit\x00" + visit
	}
	g.notices.SignIn(rw, code, page.SignIn{Back: back, Form: g.seals.form(c.bound, 0), Problem: problem, Name: c.Name})
}

// takeLogin handles a submitted login form. A token with the role to read starts a session, and the browser
// returns to the page of the form.
func (g *Guard) takeLogin(p *Policy, c Caller, rw http.ResponseWriter, r *http.Request) {
	if err := g.cross.Check(r); err != nil {
		g.refuse(rw, r, http.StatusForbidden, "the request comes from a page that is not weir's", "use weir's own page")
		return
	}
	if !g.formOf(c, rw, r) {
		return
	}
	back := local(r.PostForm.Get("back"))
	token := strings.TrimSpace(r.PostForm.Get("token"))
	found, wait, err := g.byToken(p, r, token)
	switch {
	case wait > 0:
		g.refuseForNow(rw, r, wait)
	case err != nil:
		g.showLogin(p, c, rw, http.StatusForbidden, back, "The token is unknown.")
	case found.Role < Read:
		g.showLogin(p, c, rw, http.StatusForbidden, back, "The token has the role "+found.Role.String()+", which cannot see the page.")
	default:
		until := g.now().Add(sessionFor)
		p.set(rw, "", g.seals.seal("session", session{ID: random(), Name: found.Name, Expires: until.Unix(), Mark: g.seals.mark([]byte(token))}), sessionFor)
		p.set(rw, "visit", "", -1)
		g.log.Info("login", "by", found.Name, "role", found.Role.String(), "address", network(p.origin(r)))
		http.Redirect(rw, r, back, http.StatusSeeOther)
	}
}

// logout handles the button that ends the caller's session. The session stays invalid even if its cookie is
// sent again.
func (g *Guard) logout(p *Policy, c Caller, rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		rw.Header().Set("Allow", "POST")
		g.refuse(rw, r, http.StatusMethodNotAllowed, "this is a button of the page", "go back to the page")
		return
	}
	if c.Means != BySession {
		http.Redirect(rw, r, "/", http.StatusSeeOther)
		return
	}
	if err := g.cross.Check(r); err != nil {
		g.refuse(rw, r, http.StatusForbidden, "the request comes from a page that is not weir's", "use weir's own page")
		return
	}
	if !g.formOf(c, rw, r) {
		return
	}
	g.ended.add(strings.TrimPrefix(c.bound, "session\x00"), g.now().Add(sessionFor), g.now())
	p.set(rw, "", "", -1)
	g.log.Info("logout", "by", c.Name)
	http.Redirect(rw, r, loginPath, http.StatusSeeOther)
}

// said is the result of an action, stored in a cookie for the next page.
type said struct {
	Text  string `json:"text"`
	Until int64  `json:"until"` // Unix seconds
}

// Say makes the browser's next page show the result of an action. It must be called before the response is
// written.
func (g *Guard) Say(rw http.ResponseWriter, text string) {
	const most = 1000 // a cookie has room for 4096 bytes
	if r := []rune(text); len(r) > most/2 {
		text = string(r[:most/2-1]) + "…"
	}
	g.policy.Load().set(rw, "said", g.seals.seal("said", said{text, g.now().Add(saidFor).Unix()}), saidFor)
}

type viewerKey struct{}

// forBrowser adds the data about the reader that pages show to a request.
func (g *Guard) forBrowser(p *Policy, c Caller, rw http.ResponseWriter, r *http.Request) *http.Request {
	if strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/metrics" || r.Method == http.MethodPost {
		return r
	}
	v := page.Viewer{Name: c.Name, Operate: c.Role >= Operate && c.bound != "", LogOut: c.Means == BySession, LogIn: c.Means == Nobody && len(p.tokens) > 0}
	if v.Operate || v.LogOut {
		v.Form = g.seals.form(c.bound, 0)
		// The length of a compressed page could reveal this text.
		r.Header.Del("Accept-Encoding")
	}
	if cookie, err := r.Cookie(p.cookie("said")); err == nil && wantsPage(r) {
		var s said
		if g.seals.open("said", cookie.Value, &s) && g.now().Unix() < s.Until {
			v.Said = s.Text
		}
		p.set(rw, "said", "", -1)
	}
	return r.WithContext(context.WithValue(r.Context(), viewerKey{}, v))
}

// Viewer returns the reader of a page, in a request that came through a Guard.
func Viewer(r *http.Request) page.Viewer {
	v, _ := r.Context().Value(viewerKey{}).(page.Viewer)
	return v
}
