package access

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/state/files"
)

func TestLoginAndLogout(t *testing.T) {
	s := newSite(t, nil)
	b := s.browser()
	if rec := b.ask("GET", "/targets/prod?page=2", ""); rec.Code != 303 || rec.Header().Get("Location") != "/login?back=%2Ftargets%2Fprod%3Fpage%3D2" {
		t.Fatalf("%d to %s", rec.Code, rec.Header().Get("Location"))
	}
	form := b.form("/login")
	rec := b.ask("POST", "/login", "form="+form+"&token="+strings.Repeat("x", 40)+"&back=/")
	if rec.Code != 403 || !strings.Contains(rec.Body.String(), "The token is unknown.") {
		t.Errorf("a bad token: %d %s", rec.Code, rec.Body)
	}
	if rec := b.ask("POST", "/login", "form="+form+"&token="+metricsToken); rec.Code != 403 || !strings.Contains(rec.Body.String(), "cannot see the page") {
		t.Errorf("a token for metrics: %d", rec.Code)
	}
	rec = b.ask("POST", "/login", "form="+form+"&token="+opsToken+"&back=/targets/prod")
	if rec.Code != 303 || rec.Header().Get("Location") != "/targets/prod" {
		t.Fatalf("%d to %s", rec.Code, rec.Header().Get("Location"))
	}
	for _, c := range rec.Result().Cookies() {
		if !strings.HasPrefix(c.Name, "__Host-weir") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("cookie %+v", c)
		}
		if strings.Contains(c.Value, opsToken) {
			t.Error("the cookie holds the token")
		}
	}
	rec = b.ask("GET", "/", "", "Accept-Encoding: gzip")
	if text := rec.Body.String(); rec.Code != 200 || !strings.Contains(text, "through ops/session/operate") || !strings.HasSuffix(text, "zip=") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	kept := b.cookies["__Host-weir"]
	if rec := b.ask("POST", "/logout", "form="+b.form("/")); rec.Code != 303 || rec.Header().Get("Location") != "/login" || b.cookies["__Host-weir"] != "" {
		t.Errorf("logout: %d, %v", rec.Code, b.cookies)
	}
	b.cookies["__Host-weir"] = kept // somebody has a copy
	if rec := b.ask("GET", "/", ""); rec.Code != 303 {
		t.Errorf("after the logout: %d", rec.Code)
	}
}

func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(*site){
		"after half a day":      func(s *site) { s.clock.move(sessionFor) },
		"with a clock set back": func(s *site) { s.clock.move(-time.Hour) },
		"with another token":    func(s *site) { s.file("ops", readerToken[:leastToken-1]+"x") },
		"with the file":         func(s *site) { _ = os.Remove(filepath.Join(s.dir, "ops")) },
		"with a name":           func(s *site) { s.cfg.Access.Tokens[0].Name = "others"; s.guard.Set(s.cfg.policy()) },
		"with the key":          func(s *site) { s.guard.seals.key = []byte(strings.Repeat("z", files.KeyBytes)) },
		"where TLS is gone":     func(s *site) { s.cfg.TLS = false; s.guard.Set(s.cfg.policy()) },
		"where tokens are gone": func(s *site) { s.cfg.Access.Tokens = nil; s.guard.Set(s.cfg.policy()) },
	} {
		s := newSite(t, nil)
		b := s.browser()
		b.login(opsToken)
		s.clock.move(sessionFor - time.Second)
		if rec := b.ask("GET", "/api/v1/pools", ""); rec.Code != 200 {
			t.Fatalf("%s: before it %d", name, rec.Code)
		}
		s.clock.move(time.Second - sessionFor)
		end(s)
		if rec := b.ask("GET", "/api/v1/pools", ""); rec.Code != 401 {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
}

// TestARoleIsThatOfNow has the configuration take a role away from a session.
func TestARoleIsThatOfNow(t *testing.T) {
	s := newSite(t, nil)
	b := s.browser()
	form := b.login(opsToken)
	if rec := b.ask("POST", "/actions/suspend", "form="+form); rec.Code != 303 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	s.cfg.Access.Tokens[0].Role = RoleRead
	s.guard.Set(s.cfg.policy())
	if rec := b.ask("POST", "/actions/suspend", "form="+form); rec.Code != 403 || !strings.Contains(rec.Body.String(), "The role of ops is read") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestAReplacedTokenCountsAtOnce(t *testing.T) {
	s := newSite(t, nil)
	next := strings.Repeat("n", leastToken)
	ask := func(token string) int {
		return s.ask("GET", "/", "192.0.2.7", "", "Authorization: Bearer "+token).Code
	}
	for _, step := range []struct {
		file      string
		old, next int
	}{{opsToken, 200, 401}, {opsToken + "\n\n " + next + " \r\n", 200, 200}, {next, 401, 200}, {"short\n" + next, 401, 401}, {"", 401, 401}} {
		s.guard.failed = newLimiter(failedLimit, s.clock.now)
		s.file("ops", step.file)
		if old, now := ask(opsToken), ask(next); old != step.old || now != step.next {
			t.Errorf("with %q: the old one %d, the new one %d", step.file, old, now)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "a line has 5 characters") || strings.Contains(log, next) {
		t.Errorf("log:\n%s", log)
	}
}

func TestFormsAreBoundToWhoSawThem(t *testing.T) {
	s := newSite(t, nil)
	ann, bob := s.browser(), s.browser()
	form, other := ann.login(opsToken), bob.login(opsToken)
	fresh := ann.form("/")
	for name, tc := range map[string]struct {
		form   string
		fields []string
		code   int
	}{
		"her own":                       {form, nil, 303},
		"her own again":                 {fresh, []string{"Origin: https://weir.example.com"}, 303},
		"from the same site":            {form, []string{"Sec-Fetch-Site: same-origin"}, 303},
		"another session's":             {other, nil, 403},
		"none":                          {"", nil, 403},
		"one that is changed":           {form[:len(form)-2] + "AA", nil, 403},
		"with an old browser elsewhere": {form, []string{"Origin: https://evil.example.com"}, 403},
		"from another site":             {form, []string{"Sec-Fetch-Site: cross-site"}, 403},
		"from a neighbour":              {form, []string{"Sec-Fetch-Site: same-site"}, 403},
		"from nowhere":                  {form, []string{"Origin: null"}, 403},
	} {
		if rec := ann.ask("POST", "/actions/suspend", "form="+tc.form+"&target=prod", tc.fields...); rec.Code != tc.code {
			t.Errorf("%s: %d, want %d: %s", name, rec.Code, tc.code, rec.Body)
		}
	}
	if rec := ann.ask("POST", "/logout", "form="+other); rec.Code != 403 {
		t.Errorf("logout with another's form: %d", rec.Code)
	}
	// In the address it does not count.
	if rec := ann.ask("POST", "/actions/suspend?form="+form, "target=prod"); rec.Code != 403 {
		t.Errorf("in the address: %d", rec.Code)
	}
	s.clock.move(2 * formFor)
	if s.guard.seals.checkForm("session", s.guard.seals.form("session", 2)) {
		t.Error("an old form counts")
	}
}

// TestFormsBehindTheProxy are bound to the user whom the proxy names.
func TestFormsBehindTheProxy(t *testing.T) {
	s := newSite(t, func(c *configured) { c.Access.Proxy.SecretFile = "" })
	as := func(user, method, path, body string) (int, string) {
		rec := s.ask(method, path, "10.0.0.1", body, "X-Forwarded-User: "+user, "X-Forwarded-Groups: sre", "Accept: text/html")
		return rec.Code, rec.Body.String()
	}
	_, page := as("ann", "GET", "/", "")
	form := formValue.FindStringSubmatch(page)[1]
	if code, text := as("ann", "POST", "/actions/resume", "form="+form); code != 303 {
		t.Errorf("her own: %d %s", code, text)
	}
	if code, _ := as("bob", "POST", "/actions/resume", "form="+form); code != 403 {
		t.Errorf("another's: %d", code)
	}
}

func TestWhatAnActionCameToIsSaidOnce(t *testing.T) {
	s := newSite(t, nil)
	b := s.browser()
	form := b.login(opsToken)
	b.ask("POST", "/actions/suspend", "form="+form)
	if text := s.ask("GET", "/", "192.0.2.7", "", "Cookie: __Host-weir="+b.cookies["__Host-weir"]+"; __Host-weir-said=e30.e30", "Accept: text/html").Body.String(); !strings.Contains(text, "said= ") {
		t.Errorf("what somebody made up is said: %s", text)
	}
	if text := b.ask("GET", "/", "").Body.String(); !strings.Contains(text, "said=ops did it") {
		t.Errorf("not said: %s", text)
	}
	if text := b.ask("GET", "/", "").Body.String(); !strings.Contains(text, "said= ") {
		t.Errorf("said again: %s", text)
	}
}

func TestNobodyIsLedElsewhere(t *testing.T) {
	for text, want := range map[string]string{
		"/targets/a%2Fb?x=1": "/targets/a%2Fb?x=1", "": "/", "//evil.example.com": "/", "https://evil.example.com/": "/", "javascript:alert(1)": "/", "/\\evil.example.com": "/",
		"\\/evil": "/", "/\n/evil": "/", "/%0d%0aSet-Cookie:a": "/%0d%0aSet-Cookie:a", "///evil": "/", "pools": "/", "/" + strings.Repeat("a", 3000): "/",
	} {
		if got := local(text); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestWithoutTLSOnLoopbackCookiesHaveAnotherName(t *testing.T) {
	s := newSite(t, func(c *configured) { c.Listen, c.TLS = "127.0.0.1:8344", false })
	b := s.browser()
	b.login(opsToken)
	if b.cookies["weir"] == "" || b.cookies["__Host-weir"] != "" {
		t.Errorf("cookies: %v", b.cookies)
	}
}

// FuzzIdentity holds the reader of a proxy's headers to what it promises.
func FuzzIdentity(f *testing.F) {
	for _, seed := range [][3]string{{"ann", "sre, dev", ""}, {"a\x00b", ",,", "x"}, {" ", "\u202e", ""}, {strings.Repeat("a", 300), strings.Repeat("g,", 2000), ""}, {"é", "\xff", ""}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, user, groups, second string) {
		h := http.Header{"X-Forwarded-User": {user}, "X-Forwarded-Groups": {groups}}
		if second != "" {
			h.Add("X-Forwarded-User", second)
		}
		got, list, err := identity(h, "X-Forwarded-User", "X-Forwarded-Groups")
		if second != "" && err == nil {
			t.Errorf("two users are taken as %q", got)
		}
		if err != nil && (got != "" || list != nil) || got == "" && list != nil || len(list) > maxGroups {
			t.Errorf("%q, %d groups, %v", got, len(list), err)
		}
		for _, name := range append(list, got) {
			if strings.ContainsAny(name, "\x00\n\r\u202e") || strings.TrimSpace(name) != name || len(name) > maxUser {
				t.Errorf("%q is taken for a name", name)
			}
		}
		if err == nil && got != strings.TrimSpace(user) {
			t.Errorf("%q becomes %q", user, got)
		}
	})
}

// FuzzOpen holds sealed values to being nobody else's.
func FuzzOpen(f *testing.F) {
	c := &clock{at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	s := seals{[]byte(strings.Repeat("k", files.KeyBytes)), c.now}
	good := s.seal("session", session{ID: "a", Name: "ops"})
	f.Add(good)
	f.Add("e30.e30")
	f.Add(".")
	f.Fuzz(func(t *testing.T, text string) {
		var v session
		if s.open("session", text, &v) && v.ID != "a" {
			t.Errorf("%q is opened", text)
		}
		if s.open("said", text, &v) {
			t.Errorf("%q is opened as something else", text)
		}
	})
}
