package app

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/machines"
	"github.com/weir-gitops/weir/cmd/weir/internal/relocation"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/source/upload"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/instances"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/page"
	"github.com/weir-gitops/weir/status/pulls"
)

// httpAccess checks the access to the daemon's HTTP server.
type httpAccess struct {
	guard *access.Guard
	// certificate is nil without TLS.
	certificate *access.Certificate
	notices     *page.Notices
	log         *slog.Logger
}

// newHTTPAccess returns the access checks of the page and the API. key signs sessions.
func newHTTPAccess(c *config.Config, key []byte, log *slog.Logger) (*httpAccess, error) {
	e := &httpAccess{notices: page.NewNotices(), log: log}
	e.guard = access.New(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)), access.Options{Key: key, Notices: e.notices, Logger: log, Uploads: map[string]int64{commands.PlanPath: upload.MaxPacked}})
	if c.TLS.CertFile == "" {
		return e, nil
	}
	var err error
	e.certificate, err = access.OpenCertificate(c.TLS.CertFile, c.TLS.KeyFile, log)
	return e, err
}

// check returns an error if the access settings of a configuration cannot be used.
func (e *httpAccess) check(c *config.Config) error {
	if e.certificate == nil {
		return nil
	}
	_, err := access.OpenCertificate(c.TLS.CertFile, c.TLS.KeyFile, e.log)
	return err
}

// set applies the access settings of a configuration from the next request on.
func (e *httpAccess) set(c *config.Config) {
	if e.certificate != nil {
		if err := e.certificate.Set(c.TLS.CertFile, c.TLS.KeyFile); err != nil {
			e.log.Error("the new certificate cannot be used, and the previous one stays in use", "error", err) // it was valid a moment ago
		}
	}
	e.guard.Set(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)))
}

// site contains the handlers of the daemon's HTTP server.
type site struct {
	access     *httpAccess
	now        *currentGeneration
	daemon     daemon
	current    *current.State
	recorder   *gates.Recorder
	rollouts   *rollouts
	machines   machines.Reader
	drafts     *pulls.Drafts
	dispatcher *relocation.Dispatcher // nil for a single daemon
	hooks      *forge.Receiver
	registry   *prometheus.Registry
	metrics    *metrics.Metrics
	log        *slog.Logger
	redact     func(string) string
}

// handler serves all requests to the daemon. Webhooks have their own authentication. They may come from
// anywhere, and can only trigger reads of sources. All other requests go through the guard.
func (s *site) handler() http.Handler {
	shown := page.Options{Metrics: promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}), Logger: s.log, Viewer: s.viewer, Rollouts: s.rollouts, Instances: instances.NewCache(s.machines.Read, time.Now)}
	var members commands.Members
	if s.dispatcher != nil {
		shown.Members, members = s.dispatcher.View, s.dispatcher
	}
	pages := page.Handler(s.current, shown)
	commands := commands.Handler(commands.Options{
		Members: members, Rollouts: s.rollouts,
		Book: s.recorder, Daemon: s.daemon, Logger: s.log, Redact: s.redact,
		Who:  func(r *http.Request) string { return access.CallerOf(r.Context()).Name },
		Plan: s.planDraft, Accept: s.accept, Done: s.commanded, Say: s.access.guard.Say, Refuse: s.refuse,
	}, pages)
	mux := http.NewServeMux()
	mux.Handle(forge.Prefix, page.Secured(s.hooks))
	mux.Handle("/", s.access.guard.Handler(commands))
	return s.metrics.Count(mux)
}

// refuse shows why a form had no effect.
func (s *site) refuse(w http.ResponseWriter, code int, wrong *gates.Fault, back string) {
	s.access.notices.Notice(w, code, page.Notice{Headline: "Failed: " + wrong.Message + ".", Text: wrong.Hint, Back: back})
}

// viewer returns the user of a request, with the active suspensions.
func (s *site) viewer(r *http.Request) page.Viewer {
	v := access.Viewer(r)
	v.Accepts = slices.Sorted(maps.Keys(s.now.proposals().accepts))
	now := s.recorder.Read()
	for _, held := range now.Suspensions {
		v.Holds = append(v.Holds, page.Suspension{Target: held.Target, Pool: held.Pool, Text: held.Text()})
	}
	for _, a := range now.Approvals {
		v.Approvals = append(v.Approvals, page.Approval{Target: a.For, Digest: a.Digest, Text: fmt.Sprintf("is approved by %s until %s, and has not started", a.By, a.Until.UTC().Format("2 Jan 2006 15:04 MST"))})
	}
	for _, g := range now.Grants {
		v.Approvals = append(v.Approvals, page.Approval{Target: g.Target, Digest: g.Digest, Text: "was approved by " + g.By + ", and has started: it ends when the target has converged"})
	}
	return v
}

// commanded records a command as an event, and starts a pass that uses it.
func (s *site) commanded(d commands.Action) {
	e := events.Event{Kind: "command-given", Reason: d.Command, Pool: d.Request.Pool, Text: d.Text, Facts: map[string]string{"by": d.By}}
	if len(d.Targets) == 1 {
		e.Target = d.Targets[0]
	}
	s.current.Activity.Add(e)
	s.daemon.requests.passAll()
}

// Addr returns the address of the page.
func (a *App) Addr() string { return a.listener.Addr().String() }

// PageURL returns the page's address for a browser on this machine. If the daemon listens on other
// interfaces, it uses the host's name. Links for other readers use publicURL instead.
func (a *App) PageURL() string {
	host, port, err := net.SplitHostPort(a.Addr())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "127.0.0.1"
		}
	}
	scheme := "http://"
	if a.access.certificate != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}
