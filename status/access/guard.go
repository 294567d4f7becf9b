package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/page"
)

const (
	// maxBody is the maximum size of a request body, in bytes.
	maxBody = 64 << 10
	// streamFor is the maximum duration of a stream, after which the caller must be authorized again.
	streamFor = 15 * time.Minute
	// commandHeader is the header that each API request must have if it changes something. A form of a page
	// cannot send it, and neither can a script of another origin.
	commandHeader = "X-Weir-Command"
	// actionPrefix is the path prefix of the page's forms.
	actionPrefix = "/actions/"
	loginPath    = "/login"
	logoutPath   = "/logout"
)

// Guard authenticates and authorizes every request. It is safe for concurrent use.
type Guard struct {
	policy   atomic.Pointer[Policy]
	seals    seals
	now      func() time.Time
	log      *slog.Logger
	notices  *page.Notices
	cross    *http.CrossOriginProtection
	ended    ended
	failed   *limiter
	actions  *limiter
	networks *limiter
	proofs   proofs
	// uploads contains the upload limits by path. reading bounds the uploads that are in memory while their
	// signature is checked.
	uploads map[string]int64
	reading chan struct{}
}

// Options configures a Guard.
type Options struct {
	// Key signs sessions and forms.
	Key []byte
	// Notices contains the pages that a Guard shows.
	Notices *page.Notices
	Logger  *slog.Logger
	// Uploads maps the paths to which readers may post bodies larger than maxBody to their limits in bytes.
	Uploads map[string]int64
	// Now defaults to time.Now.
	Now func() time.Time
}

// New returns a guard with a policy.
func New(p *Policy, o Options) *Guard {
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Guard{
		seals: seals{o.Key, o.Now}, now: o.Now, log: o.Logger, notices: o.Notices, cross: http.NewCrossOriginProtection(),
		failed: newLimiter(failedLimit, o.Now), actions: newLimiter(actionLimit, o.Now), networks: newLimiter(networkLimit, o.Now),
		uploads: o.Uploads, reading: make(chan struct{}, 1),
	}
	g.Set(p)
	return g
}

// Set replaces the policy, also for existing sessions.
func (g *Guard) Set(p *Policy) { g.policy.Store(p) }

// Handler returns a handler that passes authorized requests to next.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return page.Secured(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if isAsset(r) {
			next.ServeHTTP(rw, r) // public, and the login page needs them
			return
		}
		r.Body = http.MaxBytesReader(rw, r.Body, max(maxBody, g.upload(r)))
		g.serve(&uncached{ResponseWriter: rw}, r, next)
	}))
}

// isAsset reports whether a request reads an asset of the page. It rejects paths with escapes such as
// %2e%2e, because other code might resolve them to a different address.
func isAsset(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/assets/") && r.URL.RawPath == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// Origin returns the address that a request comes from, for rate limits and counts: the address of its
// connection, or the address that the configured proxy reports.
func (g *Guard) Origin(r *http.Request) netip.Addr { return g.policy.Load().origin(r) }

// serve finds out who sends a request, and refuses it or passes it on to next. Health checks are answered
// without finding out the caller first.
func (g *Guard) serve(rw http.ResponseWriter, r *http.Request, next http.Handler) {
	p := g.policy.Load()
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		g.health(p, rw, r, next)
		return
	}
	if p.ownHost && !ownName(r.Host) {
		g.refuse(rw, r, http.StatusMisdirectedRequest, "weir is not served under this name",
			"name it by its address, or write access: {anonymous: read} if everybody who can reach weir may read")
		return
	}
	if r.URL.Path == ProofPath && r.Method == http.MethodGet {
		g.prove(p, rw, r)
		return
	}
	c, wait, err := g.caller(p, r)
	switch {
	case wait > 0:
		g.refuseForNow(rw, r, wait)
		return
	case errors.Is(err, errBadToken):
		g.unknown(rw, r, p, "the token is unknown", "use one that the configuration lists under access.tokens")
		return
	case err != nil:
		g.refuse(rw, r, http.StatusBadRequest, err.Error(), "check the configuration of the proxy")
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
	switch r.URL.Path {
	case loginPath:
		g.login(p, c, rw, r)
	case logoutPath:
		g.logout(p, c, rw, r)
	default:
		g.pass(p, c, rw, r, next)
	}
}

// pass forwards the request if the role of the caller allows it, and otherwise answers it. Actions and
// uploads also have to pass mayAct.
func (g *Guard) pass(p *Policy, c Caller, rw http.ResponseWriter, r *http.Request, next http.Handler) {
	need, sends := needOf(r), g.upload(r) > 0
	if sends {
		need = Read
	}
	if need == Operate && c.Means == Nobody && p.local && strings.HasPrefix(r.URL.Path, "/api/") {
		next.ServeHTTP(rw, r) // package commands checks that it comes from this machine
		return
	}
	switch {
	case c.Role >= need:
	case c.Means == Nobody:
		g.unknown(rw, r, p, "the caller is unknown", "send a token of access.tokens in the configuration, in the header Authorization: Bearer")
		return
	case c.Role == None:
		g.refuse(rw, r, http.StatusForbidden, "there is no role for "+c.Name, "add a rule for this user or a group under access.rules")
		return
	default:
		g.refuse(rw, r, http.StatusForbidden, "the role of "+c.Name+" is "+c.Role.String()+", and this needs "+need.String(), "ask an administrator of weir's configuration for another role")
		return
	}
	if sends && c.Means == Nobody && !p.local {
		g.unknown(rw, r, p, "the caller is unknown", "send a token of access.tokens in the configuration: this needs more than permission to read pages")
		return
	}
	if (need == Operate || sends) && !g.mayAct(p, c, rw, r) {
		return
	}
	if c.signed != nil {
		if err := c.signed(r); err != nil {
			g.unknown(rw, r, p, "the token is unknown", "use one that the configuration lists under access.tokens")
			return
		}
	}
	if r.URL.Path == "/live" {
		ctx, cancel := context.WithTimeout(r.Context(), streamFor)
		defer cancel()
		r = r.WithContext(live.By(ctx, streamer(p, c, r)))
	}
	r = g.forBrowser(p, c, rw, r)
	next.ServeHTTP(rw, r)
}

// streamer identifies callers to count their streams: by name, or by address if they have none.
func streamer(p *Policy, c Caller, r *http.Request) string {
	if c.Means == Nobody {
		return "address\x00" + network(p.origin(r))
	}
	return "name\x00" + c.Name
}

// mayAct rejects actions that a foreign page may have sent, and limits the rate of actions. If it returns
// false, it has answered the request.
func (g *Guard) mayAct(p *Policy, c Caller, rw http.ResponseWriter, r *http.Request) bool {
	if err := g.cross.Check(r); err != nil {
		g.refuse(rw, r, http.StatusForbidden, "the request comes from a page that is not weir's", "use weir's own page")
		return false
	}
	if strings.HasPrefix(r.URL.Path, actionPrefix) {
		if !g.formOf(c, rw, r) {
			return false
		}
	} else if r.Header.Get(commandHeader) == "" {
		g.refuse(rw, r, http.StatusForbidden, "weir accepts commands from programs, not from pages", "send the header "+commandHeader+": 1")
		return false
	}
	for _, wait := range []time.Duration{g.networks.try(network(p.origin(r))), g.actions.try(string(c.Means) + "\x00" + c.Name)} {
		if wait > 0 {
			g.refuseForNow(rw, r, wait)
			return false
		}
	}
	return true
}

// formOf reads a form, and checks that it belongs to a page of the same caller.
func (g *Guard) formOf(c Caller, rw http.ResponseWriter, r *http.Request) bool {
	if err := r.ParseForm(); err != nil {
		code := http.StatusBadRequest
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			code = http.StatusRequestEntityTooLarge
		}
		g.refuse(rw, r, code, "the form cannot be read", "go back and try again")
		return false
	}
	if !g.seals.checkForm(c.bound, r.PostForm.Get(page.FormField)) {
		g.refuse(rw, r, http.StatusForbidden, "the form is too old, or from another login", "go back, load the page again and repeat it")
		return false
	}
	return true
}

// upload returns the maximum body size in bytes of a request to an upload path, or 0 for any other request.
func (g *Guard) upload(r *http.Request) int64 {
	if r.Method != http.MethodPost {
		return 0
	}
	return g.uploads[r.URL.Path]
}

// needOf returns the role that a request needs.
func needOf(r *http.Request) Role {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return Operate
	case r.URL.Path == "/metrics":
		return Metrics
	default:
		return Read
	}
}

// health answers every caller. Callers without permission to read receive only the status code.
func (g *Guard) health(p *Policy, rw http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		rw.Header().Set("Allow", "GET, HEAD")
		g.refuse(rw, r, http.StatusMethodNotAllowed, "this address is read-only", "use GET")
		return
	}
	if c, _, err := g.caller(p, r); err == nil && c.Role >= Read && (!p.ownHost || ownName(r.Host)) {
		next.ServeHTTP(rw, r)
		return
	}
	w := &bare{header: http.Header{}}
	next.ServeHTTP(w, r)
	text := map[bool]string{true: "ok\n", false: "no\n"}[w.code < http.StatusBadRequest]
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.WriteHeader(max(w.code, http.StatusOK))
	_, _ = rw.Write([]byte(text)) // ignore a disconnected reader
}

// bare discards everything except the status code of a response.
type bare struct {
	header http.Header
	code   int
}

func (b *bare) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *bare) WriteHeader(code int) {
	if b.code == 0 {
		b.code = code
	}
}

// Write implements http.ResponseWriter.
func (b *bare) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return len(p), nil
}

// uncached forbids caching of every response. It also handles errors, because http.Error removes headers
// that were set before.
type uncached struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (u *uncached) WriteHeader(code int) {
	if u.Header().Get("Cache-Control") == "" {
		u.Header().Set("Cache-Control", "no-store")
	}
	u.ResponseWriter.WriteHeader(code)
}

// Unwrap supports http.ResponseController.
func (u *uncached) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// ownName reports whether a request names this machine in a way that nobody else can point here.
func ownName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil
}

// wantsPage reports whether the client accepts HTML, as a browser does.
func wantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// unknown answers a caller without valid credentials. A browser gets the login page, if logins are
// possible.
func (g *Guard) unknown(rw http.ResponseWriter, r *http.Request, p *Policy, message, hint string) {
	if len(p.tokens) > 0 && r.Method == http.MethodGet && wantsPage(r) {
		http.Redirect(rw, r, loginAddress(r.URL), http.StatusSeeOther)
		return
	}
	rw.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
	g.refuse(rw, r, http.StatusUnauthorized, message, hint)
}

// refuseForNow tells the caller to retry later.
func (g *Guard) refuseForNow(rw http.ResponseWriter, r *http.Request, after time.Duration) {
	seconds := int(math.Ceil(after.Seconds()))
	rw.Header().Set("Retry-After", strconv.Itoa(seconds))
	g.refuse(rw, r, http.StatusTooManyRequests, "too many requests", fmt.Sprintf("try again in %d s", seconds))
}

// refuse sends an error in the format that the client accepts. message and hint must start with a
// lower-case ASCII letter.
func (g *Guard) refuse(rw http.ResponseWriter, r *http.Request, code int, message, hint string) {
	if wantsPage(r) {
		g.notices.Notice(rw, code, page.Notice{Headline: strings.ToUpper(message[:1]) + message[1:] + ".", Text: strings.ToUpper(hint[:1]) + hint[1:] + "."})
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		http.Error(rw, message+"\n"+hint, code)
		return
	}
	body := &bytes.Buffer{}
	enc := json.NewEncoder(body)
	if err := enc.Encode(map[string]string{"error": message, "hint": hint}); err != nil {
		panic("access: a refusal cannot be written: " + err.Error()) // it contains only strings
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_, _ = rw.Write(body.Bytes()) // ignore a disconnected reader
}
