package app

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/source/upload"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/page"
)

// site holds the handlers of the daemon's HTTP server and the access checks before them.
type site struct {
	app   *App
	guard *access.Guard
	// certificate is nil without TLS.
	certificate *access.Certificate
	notices     *page.Notices
}

// newSite makes the handlers and access checks of the page and the API.
func newSite(a *App) (*site, error) {
	c := a.o.Config
	key, err := peers{a}.keyOf(keys.Session, access.Key)
	if err != nil {
		return nil, err
	}
	s := &site{app: a, notices: page.NewNotices()}
	s.guard = access.New(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)), access.Options{Key: key, Notices: s.notices, Logger: a.log, Uploads: map[string]int64{commands.PlanPath: upload.MaxPacked}})
	if c.TLS.CertFile == "" {
		return s, nil
	}
	s.certificate, err = access.OpenCertificate(c.TLS.CertFile, c.TLS.KeyFile, a.log)
	return s, err
}

// check says what keeps a configuration from saying who may do what.
func (s *site) check(c *config.Config) error {
	if s.certificate == nil {
		return nil
	}
	_, err := access.OpenCertificate(c.TLS.CertFile, c.TLS.KeyFile, s.app.log)
	return err
}

// set makes a configuration decide who may do what, from the next request on.
func (s *site) set(c *config.Config) {
	if s.certificate != nil {
		if err := s.certificate.Set(c.TLS.CertFile, c.TLS.KeyFile); err != nil {
			s.app.log.Error("the new certificate cannot be used, the one before stays", "error", err) // it could a moment ago
		}
	}
	s.guard.Set(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)))
}

// handler serves everything that the daemon serves. Webhooks prove themselves, so they may come
// from anywhere and change one thing: when sources are read. All other requests go through the
// guard.
func (s *site) handler() http.Handler {
	shown := page.Options{Metrics: promhttp.HandlerFor(s.app.registry, promhttp.HandlerOpts{}), Logger: s.app.log, Viewer: s.viewer, Rollouts: s.app.rollouts}
	var crew commands.Crew
	if s.app.dispatcher != nil {
		shown.Members, crew = s.app.dispatcher.View, s.app.dispatcher
	}
	pages := page.Handler(s.app.board, shown)
	commands := commands.Handler(commands.Options{
		Crew: crew, Rollouts: s.app.rollouts,
		Book: s.app.book, Daemon: daemon{s.app}, Logger: s.app.log, Redact: s.app.o.Secrets.Redact,
		Who:  func(r *http.Request) string { return access.CallerOf(r.Context()).Name },
		Plan: s.planDraft, Accept: s.accept, Done: s.commanded, Say: s.guard.Say, Refuse: s.refuse,
	}, pages)
	mux := http.NewServeMux()
	mux.Handle(forge.Prefix, page.Secured(s.app.hooks))
	mux.Handle("/", s.guard.Handler(commands))
	return s.app.metrics.Count(mux)
}

// refuse shows why a form had no effect.
func (s *site) refuse(w http.ResponseWriter, code int, wrong *gates.Fault, back string) {
	s.notices.Notice(w, code, page.Notice{Headline: "Nothing was done: " + wrong.Message + ".", Text: wrong.Hint, Back: back})
}

// viewer returns the user of a request, with the suspensions in force.
func (s *site) viewer(r *http.Request) page.Viewer {
	v := access.Viewer(r)
	if g := s.app.gen.Load(); g != nil {
		v.Accepts = slices.Sorted(maps.Keys(g.accepts))
	}
	now := s.app.book.Read()
	for _, held := range now.Suspensions {
		v.Holds = append(v.Holds, page.Suspension{Target: held.Target, Pool: held.Pool, Text: held.Text()})
	}
	for _, a := range now.Approvals {
		v.Approvals = append(v.Approvals, page.Approval{Target: a.For, Digest: a.Digest, Text: fmt.Sprintf("is approved by %s until %s, and has not begun", a.By, a.Until.UTC().Format("2 Jan 2006 15:04 MST"))})
	}
	for _, g := range now.Grants {
		v.Approvals = append(v.Approvals, page.Approval{Target: g.Target, Digest: g.Digest, Text: "was approved by " + g.By + ", and has begun: it is done once the target has converged"})
	}
	return v
}

// commanded writes down who did what, and makes a pass see it.
func (s *site) commanded(d commands.Action) {
	e := events.Event{Kind: "command-given", Reason: d.Command, Pool: d.Request.Pool, Text: d.Text, Facts: map[string]string{"by": d.By}}
	if len(d.Targets) == 1 {
		e.Target = d.Targets[0]
	}
	s.app.board.Event(e)
	s.app.passAll()
}

// Addr is the address of the page.
func (a *App) Addr() string { return a.listener.Addr().String() }

// PageURL is the page's address for a browser on this machine, or by the host's name
// where the daemon listens on others too. Links in what others read have publicURL
// instead.
func (a *App) PageURL() string {
	host, port, err := net.SplitHostPort(a.Addr())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "127.0.0.1"
		}
	}
	scheme := "http://"
	if a.site.certificate != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

func (a *App) embeddedURL() string {
	if a.emulator == nil {
		return ""
	}
	return a.emulator.URL()
}
