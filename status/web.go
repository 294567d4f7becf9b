package status

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// HandlerOptions configures the board's HTTP handler.
type HandlerOptions struct {
	// Metrics serves /metrics; nil leaves it out.
	Metrics http.Handler
	// StaleAfter is how long the reconciler may show no sign of life until
	// /healthz says so, unless a beat said that it may take longer; 0 means 10
	// minutes.
	StaleAfter time.Duration
	Logger     *slog.Logger
}

const defaultStaleAfter = 10 * time.Minute

// Handler serves the page at /, a page for each target at /targets/{name}, the
// API at /api/v1/pools, /api/v1/targets, /api/v1/events and /api/v1/history, /healthz, /readyz and /metrics. It
// answers GET and HEAD only and changes nothing. Timeouts are the server's.
func (b *Board) Handler(o HandlerOptions) http.Handler {
	if o.StaleAfter <= 0 {
		o.StaleAfter = defaultStaleAfter
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &web{board: b, o: o, started: b.now(), assets: map[string]asset{}}
	for name, kind := range map[string]string{
		"style.css": "text/css; charset=utf-8", "refresh.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		w.addAsset(name, kind)
	}
	w.pages = template.Must(template.New("").Funcs(template.FuncMap{
		"asset": func(name string) string { return w.assets[name].path },
	}).ParseFS(pageFiles, "page/*.tmpl"))

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", w.index)
	mux.HandleFunc("GET /targets/{name}", w.target)
	mux.HandleFunc("GET /api/v1/pools", w.apiPools)
	mux.HandleFunc("GET /api/v1/targets", w.apiTargets)
	mux.HandleFunc("GET /api/v1/events", w.apiEvents)
	mux.HandleFunc("GET /api/v1/history", w.apiHistory)
	mux.HandleFunc("GET /healthz", w.healthz)
	mux.HandleFunc("GET /readyz", w.readyz)
	for _, a := range w.assets {
		mux.HandleFunc("GET "+a.path, a.serve)
	}
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	return secured(mux)
}

type web struct {
	board   *Board
	o       HandlerOptions
	pages   *template.Template
	assets  map[string]asset
	started time.Time
}

// asset is an embedded file, served under a name that changes with its content,
// so that a browser may keep it for ever.
type asset struct {
	path, kind string
	body       []byte
}

func (w *web) addAsset(name, kind string) {
	body, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic("status: " + name + " is not embedded") // decided when the binary is built
	}
	sum := sha256.Sum256(body)
	stem, ext, _ := strings.Cut(name, ".")
	w.assets[name] = asset{path: "/assets/" + stem + "." + hex.EncodeToString(sum[:6]) + "." + ext, kind: kind, body: body}
}

func (a asset) serve(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", a.kind)
	rw.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = rw.Write(a.body) // the reader is gone; nobody is left to tell
}

// secured sets the headers that keep the page from being framed, sniffed, or
// made to load or run anything that is not ours.
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
	w.render(rw, http.StatusOK, "index", w.indexView(r.URL.Query()))
}

func (w *web) target(rw http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	t, ok := w.board.Target(name)
	if !ok {
		w.render(rw, http.StatusNotFound, "missing", missingView{layout: w.layout("not found"), Name: name})
		return
	}
	w.render(rw, http.StatusOK, "target", w.targetPage(t))
}

// render writes a whole page or none.
func (w *web) render(rw http.ResponseWriter, status int, name string, view any) {
	var page bytes.Buffer
	if err := w.pages.ExecuteTemplate(&page, name, view); err != nil {
		w.o.Logger.Error("render of page failed", "page", name, "error", err)
		http.Error(rw, "the page could not be rendered; weir's log says why", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.WriteHeader(status)
	_, _ = rw.Write(page.Bytes()) // the reader is gone; nobody is left to tell
}

func (w *web) healthz(rw http.ResponseWriter, _ *http.Request) {
	beat, within := w.board.lastBeat()
	if beat.IsZero() {
		beat = w.started
	}
	if silent := w.board.now().Sub(beat); silent > max(within, w.o.StaleAfter) {
		plain(rw, http.StatusServiceUnavailable, fmt.Sprintf("stuck: no sign of life from the reconciler for %s", silent.Round(time.Second)))
		return
	}
	plain(rw, http.StatusOK, "ok")
}

func (w *web) readyz(rw http.ResponseWriter, _ *http.Request) {
	if missing := w.board.missing(); len(missing) > 0 {
		plain(rw, http.StatusServiceUnavailable, "not ready: waiting for "+strings.Join(missing, ", "))
		return
	}
	plain(rw, http.StatusOK, "ready")
}

func plain(rw http.ResponseWriter, status int, text string) {
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.WriteHeader(status)
	_, _ = rw.Write([]byte(text + "\n")) // the reader is gone; nobody is left to tell
}

func (w *web) writeJSON(rw http.ResponseWriter, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		w.o.Logger.Error("encoding of answer failed", "error", err)
		http.Error(rw, "the answer could not be encoded; weir's log says why", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(append(body, '\n')) // the reader is gone; nobody is left to tell
}
