package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/members"
)

//go:embed assets
var pageFiles embed.FS

// Options configures the HTTP handler of the page.
type Options struct {
	// Metrics serves /metrics; nil disables it.
	Metrics http.Handler
	// StaleAfter is the time without a heartbeat from the reconciler after which /healthz reports a
	// failure, unless the last heartbeat allowed more time. 0 means 10 minutes.
	StaleAfter time.Duration
	Logger     *slog.Logger
	// Members returns the members that share the work of the instance; nil for a single daemon.
	Members func() members.View
	// Rollouts gives access to the FleetRollouts; nil if there cannot be any.
	Rollouts Rollouts
	// Instances reads facts about instances from AWS; nil if AWS cannot be read.
	Instances Instances
	// Viewer returns the reader of a page; nil means that all readers see the same page.
	Viewer func(*http.Request) Viewer
}

// Handler serves the page, the API below /api/v1, /healthz, /readyz and /metrics:
//
//   - / is the fleet, and /pools a list of all pools.
//   - /targets/NAME is a target, /targets/NAME/plan its plan, and
//     /targets/NAME/pools/NAMESPACE/NAME one of its pools.
//   - /pulls lists pull requests, and /pulls/SOURCE/NUMBER is one of them.
//   - /rollouts lists FleetRollouts, and /rollouts/SOURCE/NAMESPACE/NAME is one of them.
//   - /activity lists events and passes, and /configuration shows the configuration.
//   - /api/v1/instances/ID is an EC2 instance. A search for an instance id leads to its pool.
//   - /members lists the members, and /status has all of this for programs.
//   - /live sends changes to open pages.
//
// It accepts only GET and HEAD, and changes nothing. The server's timeouts apply, except that /live lasts
// as long as a page is open, or until current.State.Live is closed.
func Handler(b *current.State, o Options) http.Handler {
	if o.StaleAfter <= 0 {
		o.StaleAfter = current.DefaultStaleAfter
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &web{views: views{current: b, o: o}, started: b.Now(), assets: map[string]asset{}}
	return w.handler()
}

// load parses the templates and assets.
func (w *web) load() {
	for name, kind := range map[string]string{
		"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		w.addAsset(name, kind)
	}
	w.pages = template.Must(template.New("").Funcs(template.FuncMap{
		"asset": func(name string) string { return w.assets[name].path },
	}).ParseFS(pageFiles, "assets/*.tmpl"))
}

// handler returns the routes of the page and the API, with headers for security.
func (w *web) handler() http.Handler {
	w.load()
	mux := http.NewServeMux()
	for path, answer := range map[string]http.HandlerFunc{
		"/{$}": w.toInstance(w.index), "/pools": w.toInstance(w.pools), "/activity": w.activity, "/configuration": w.configuration,
		"/targets/{name}": w.toInstance(w.target), "/targets/{name}/plan": w.targetPlan, "/targets/{target}/pools/{namespace}/{name}": w.pool,
		"/pulls": w.pulls, "/pulls/{source}/{number}": w.pull, "/api/v1/pulls": w.apiPulls,
		"/members": w.members, "/api/v1/members": w.apiMembers, "/status": w.status,
		"/rollouts": w.rolloutList, "/rollouts/{source}/{name...}": w.rollout,
		"/live":         w.current.Live.ServeHTTP,
		"/api/v1/pools": w.apiPools, "/api/v1/targets": w.apiTargets, "/api/v1/events": w.apiEvents, "/api/v1/history": w.apiHistory,
		"/api/v1/instances/{id}": w.apiInstance,
		"/healthz":               w.healthz, "/readyz": w.readyz,
		"/": w.nothing,
	} {
		mux.HandleFunc("GET "+path, answer)
	}
	for _, a := range w.assets {
		mux.HandleFunc("GET "+a.path, a.serve)
	}
	if w.o.Metrics != nil {
		mux.Handle("GET /metrics", w.o.Metrics)
	}
	return secured(mux)
}

type web struct {
	views
	pages   *template.Template
	assets  map[string]asset
	started time.Time
}

// asset is an embedded file. Its URL contains a hash of its content, so that browsers can cache it forever.
type asset struct {
	path, kind string
	body       []byte
}

func (w *web) addAsset(name, kind string) {
	body, err := pageFiles.ReadFile("assets/" + name)
	if err != nil {
		panic("status: " + name + " is not embedded") // known when the binary is built
	}
	sum := sha256.Sum256(body)
	stem, ext, _ := strings.Cut(name, ".")
	w.assets[name] = asset{path: "/assets/" + stem + "." + hex.EncodeToString(sum[:6]) + "." + ext, kind: kind, body: body}
}

func (a asset) serve(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", a.kind)
	rw.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	send(rw, r, http.StatusOK, a.body)
}

// secured sets headers that forbid framing, content sniffing, and loading or running anything that is
// not weir's own.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
			"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(rw, r)
	})
}

func (w *web) index(rw http.ResponseWriter, r *http.Request) {
	w.render(rw, r, http.StatusOK, "index", w.indexView(r.URL.Query()))
}

func (w *web) pools(rw http.ResponseWriter, r *http.Request) {
	w.render(rw, r, http.StatusOK, "allpools", w.poolsView(r.URL.Query()))
}

func (w *web) activity(rw http.ResponseWriter, r *http.Request) {
	w.render(rw, r, http.StatusOK, "activity", w.activityView(r.URL.Query()))
}

func (w *web) configuration(rw http.ResponseWriter, r *http.Request) {
	w.render(rw, r, http.StatusOK, "configuration", w.configView())
}

func (w *web) target(rw http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if t, ok := w.current.Targets.Find(name); ok {
		w.render(rw, r, http.StatusOK, "target", w.targetPage(t, r.URL.Query()))
		return
	}
	w.missing(rw, r, "Target "+name+" not found.", "It may have been renamed, or removed from the configuration or from Git.", linked{"All targets", "/"})
}

func (w *web) targetPlan(rw http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if t, ok := w.current.Targets.Find(name); ok {
		w.render(rw, r, http.StatusOK, "plan", w.planPage(t, r.URL.Query()))
		return
	}
	w.missing(rw, r, "Target "+name+" not found.", "It may have been renamed, or removed from the configuration or from Git.", linked{"All targets", "/"})
}

// pool serves the page of one pool.
func (w *web) pool(rw http.ResponseWriter, r *http.Request) {
	target, namespace, name := r.PathValue("target"), r.PathValue("namespace"), r.PathValue("name")
	t, ok := w.current.Targets.Find(target)
	if !ok {
		w.missing(rw, r, "Target "+target+" not found.", "It may have been renamed, or removed from the configuration or from Git.", linked{"All targets", "/"})
		return
	}
	p, ok := findPool(&t, namespace, name)
	if !ok {
		hint := "It may have been removed from Git."
		if t.Last == nil {
			hint = "The target has had no pass yet, so its pools are unknown."
		}
		w.missing(rw, r, "Pool "+namespace+"/"+name+" not found in "+target+".", hint, linked{"Target " + target, targetLink(target)})
		return
	}
	w.render(rw, r, http.StatusOK, "pool", w.poolPage(r.Context(), t, p, r.URL.Query()))
}

// nothing answers requests to unknown paths.
func (w *web) nothing(rw http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		plain(rw, http.StatusNotFound, "not found: see /api/v1/pools, /api/v1/targets, /api/v1/instances/ID, /api/v1/pulls, /api/v1/members, /api/v1/events and /api/v1/history")
		return
	}
	if strings.HasPrefix(r.URL.Path, "/assets/") {
		// Users without permission to see pages request assets, too. An HTML page would show the instance
		// name, so they get plain text.
		plain(rw, http.StatusNotFound, "not found")
		return
	}
	w.missing(rw, r, "Page not found.", "weir has no page with this address.", linked{"The fleet", "/"})
}

func (w *web) missing(rw http.ResponseWriter, r *http.Request, headline, hint string, back linked) {
	w.render(rw, r, http.StatusNotFound, "missing", missingView{layout: w.layout("", "Not found"), Headline: headline, Hint: hint, Back: back})
}

// render writes a whole page or none. It escapes hidden characters.
func (w *web) render(rw http.ResponseWriter, r *http.Request, status int, name string, view any) {
	if v, ok := view.(interface{ readBy(Viewer) }); ok && w.o.Viewer != nil {
		v.readBy(w.o.Viewer(r))
	}
	var page bytes.Buffer
	if err := w.pages.ExecuteTemplate(&page, name, view); err != nil {
		w.o.Logger.Error("render of page failed", "page", name, "error", err)
		http.Error(rw, "weir could not render the page; see weir's log", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(rw, r, status, []byte(visible.HTML(page.String())))
}

func (w *web) healthz(rw http.ResponseWriter, _ *http.Request) {
	if silent, alive := w.current.Heartbeat.Silence(w.started, w.o.StaleAfter); !alive {
		plain(rw, http.StatusServiceUnavailable, fmt.Sprintf("stuck: the reconciler has shown no activity for %s", silent.Round(time.Second)))
		return
	}
	plain(rw, http.StatusOK, "ok")
}

// readyz serves the readiness probe. With several members, it does not wait for the first pass over every
// target, because other members may own them.
func (w *web) readyz(rw http.ResponseWriter, _ *http.Request) {
	missing := w.current.Targets.Missing()
	if _, several := w.memberView(); several && w.current.Targets.Configured() {
		// Other members may own the missing targets, or no member for a while. Any member can serve.
		missing = nil
	}
	if len(missing) > 0 {
		plain(rw, http.StatusServiceUnavailable, "not ready: waiting for "+strings.Join(missing, ", "))
		return
	}
	if why := w.current.Daemon.Facts().Unwritten; why != "" {
		plain(rw, http.StatusOK, "ready, but weir writes nothing: "+why)
		return
	}
	plain(rw, http.StatusOK, "ready")
}

func plain(rw http.ResponseWriter, status int, text string) {
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.WriteHeader(status)
	_, _ = rw.Write([]byte(text + "\n")) // ignore a disconnected reader
}
