package access

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/state/files"
	"github.com/weir-gitops/weir/status/page"
)

// Tokens of the configuration in tests, one for each role.
var (
	opsToken     = strings.Repeat("o", leastToken)
	readerToken  = strings.Repeat("r", leastToken)
	metricsToken = strings.Repeat("m", leastToken)
	proxySecret  = strings.Repeat("p", leastToken)
)

// uploadPath is where those who may read send something.
const uploadPath = "/api/v1/plan"

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// site is a guard with something behind it that tells who came through.
type site struct {
	t     *testing.T
	guard *Guard
	clock *clock
	dir   string
	cfg   *configured
	log   *strings.Builder
}

func (s *site) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// configured is what a site's policy is made of.
type configured struct {
	Listen string
	TLS    bool
	Access Access
}

func (c *configured) policy() *Policy {
	return NewPolicy(c.Access, c.TLS || c.Access.WithoutTLS == BehindProxy, OnLoopback(c.Listen))
}

// newSite has tokens of three roles and a proxy at 10.0.0.1, over TLS, and what
// change makes of it.
func newSite(t *testing.T, change func(*configured)) *site {
	t.Helper()
	s := &site{t: t, clock: &clock{at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}, dir: t.TempDir(), log: &strings.Builder{}}
	s.cfg = &configured{Listen: "0.0.0.0:8344", TLS: true, Access: Access{
		Tokens: []Token{
			{Name: "ops", Role: RoleOperate, File: s.file("ops", opsToken+"\n")},
			{Name: "reader", Role: RoleRead, File: s.file("reader", readerToken)},
			{Name: "prometheus", Role: RoleMetrics, File: s.file("metrics", metricsToken)},
		},
		Proxy: Proxy{
			Addresses: []string{"10.0.0.1"}, UserHeader: "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups",
			SecretFile: s.file("secret", proxySecret), SecretHeader: "X-Weir-Proxy-Secret",
		},
		Rules: []Rule{
			{Users: []string{"guest"}, Role: RoleRead}, {Groups: []string{"sre"}, Role: RoleOperate}, {Groups: []string{"dev"}, Role: RoleRead},
		},
	}}
	if change != nil {
		change(s.cfg)
	}
	s.guard = New(s.cfg.policy(), Options{Key: []byte(strings.Repeat("k", files.KeyBytes)), Notices: page.NewNotices(), Logger: slog.New(slog.NewTextHandler(s.log, nil)), Now: s.clock.now, Uploads: map[string]int64{uploadPath: 100 << 10}})
	return s
}

// open has only who listens on the loopback interface, and no login.
func openSite(t *testing.T) *site {
	return newSite(t, func(c *configured) {
		c.Listen, c.TLS, c.Access = "127.0.0.1:8344", false, Access{}
	})
}

// behind is what stands behind a guard.
func (s *site) behind() http.Handler {
	return s.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, v := CallerOf(r.Context()), Viewer(r)
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, actionPrefix) {
			s.guard.Say(w, c.Name+" did it")
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "through "+c.Name+"/"+string(c.Means)+"/"+c.Role.String()+" form="+v.Form+" said="+v.Said+" zip="+r.Header.Get("Accept-Encoding"))
	}))
}

// ask is a request as it reaches the guard; fields are "Name: value".
func (s *site) ask(method, path, from string, body string, fields ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = from+":4000", "weir.example.com"
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		switch name {
		case "Host":
			r.Host = value
		default:
			r.Header.Add(name, value)
		}
	}
	rec := httptest.NewRecorder()
	s.behind().ServeHTTP(rec, r)
	return rec
}

// browser keeps cookies between requests, as over TLS.
type browser struct {
	*site
	cookies map[string]string
}

func (s *site) browser() *browser { return &browser{s, map[string]string{}} }

func (b *browser) ask(method, path, body string, fields ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	for name, value := range b.cookies {
		fields = append(fields, "Cookie: "+name+"="+value)
	}
	rec := b.site.ask(method, path, "192.0.2.7", body, append(fields, "Accept: text/html")...)
	for _, c := range rec.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return rec
}

var formValue = regexp.MustCompile(`(?:name="form" value="|form=)([A-Za-z0-9_-]+)`)

// form is the token of the form on a page.
func (b *browser) form(path string) string {
	b.t.Helper()
	m := formValue.FindStringSubmatch(b.ask(http.MethodGet, path, "").Body.String())
	if m == nil {
		b.t.Fatalf("there is no form at %s", path)
	}
	return m[1]
}

// login logs in and returns the token of forms.
func (b *browser) login(token string) string {
	b.t.Helper()
	if rec := b.ask(http.MethodPost, "/login", "form="+b.form("/login")+"&token="+token+"&back=/pools"); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/pools" {
		b.t.Fatalf("login gives %d to %s: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
	}
	if token == opsToken {
		return b.form("/")
	}
	return ""
}
