package app

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/source/upload"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/page"
)

// openAccess makes what stands before the page and the API.
func (a *App) openAccess() error {
	c := a.o.Config
	key, err := access.Key(a.state.Dir)
	if err != nil {
		return err
	}
	a.notices = page.NewNotices()
	a.guard = access.New(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)), access.Options{Key: key, Notices: a.notices, Logger: a.log, Uploads: map[string]int64{commands.PlanPath: upload.MaxPacked}})
	if c.TLS.CertFile == "" {
		return nil
	}
	a.certificate, err = access.OpenCertificate(c.TLS.CertFile, c.TLS.KeyFile, a.log)
	return err
}

// checkAccess says what keeps a configuration from saying who may do what.
func (a *App) checkAccess(c *config.Config) error {
	if a.certificate == nil {
		return nil
	}
	_, err := access.OpenCertificate(c.TLS.CertFile, c.TLS.KeyFile, a.log)
	return err
}

// setAccess has a configuration say who may do what, from the next request on.
func (a *App) setAccess(c *config.Config) {
	if a.certificate != nil {
		if err := a.certificate.Set(c.TLS.CertFile, c.TLS.KeyFile); err != nil {
			a.log.Error("the new certificate cannot be used, the one before stays", "error", err) // it could a moment ago
		}
	}
	a.guard.Set(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)))
}

// handler is everything that the daemon serves. Webhooks prove themselves, so they
// may come from anywhere and change one thing: when sources are looked at. All else
// goes through the guard.
func (a *App) handler() http.Handler {
	pages := page.Handler(a.board, page.Options{
		Metrics: promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}), Logger: a.log, Viewer: a.viewer,
	})
	commands := commands.Handler(commands.Options{
		Book: a.book, Daemon: daemon{a}, Logger: a.log, Redact: a.o.Secrets.Redact,
		Who:  func(r *http.Request) string { return access.CallerOf(r.Context()).Name },
		Plan: a.planDraft, Done: a.commanded, Say: a.guard.Say, Refuse: a.refuse,
	}, pages)
	mux := http.NewServeMux()
	mux.Handle(forge.Prefix, page.Secured(a.hooks))
	mux.Handle("/", a.guard.Handler(commands))
	return a.metrics.Count(mux)
}

// refuse shows why nothing came of a form.
func (a *App) refuse(w http.ResponseWriter, code int, wrong *gates.Fault, back string) {
	a.notices.Notice(w, code, page.Notice{Headline: "Nothing was done: " + wrong.Message + ".", Text: wrong.Hint, Back: back})
}

// viewer is who reads a page, with what is suspended.
func (a *App) viewer(r *http.Request) page.Viewer {
	v := access.Viewer(r)
	for _, s := range a.book.Read().Suspensions {
		v.Holds = append(v.Holds, page.Suspension{Target: s.Target, Pool: s.Pool, Text: s.Text()})
	}
	return v
}

// commanded writes down who did what, and has a pass see it.
func (a *App) commanded(d commands.Deed) {
	e := events.Event{Kind: "command-given", Reason: d.Command, Pool: d.Request.Pool, Text: d.Text, Facts: map[string]string{"by": d.By}}
	if len(d.Targets) == 1 {
		e.Target = d.Targets[0]
	}
	a.board.Event(e)
	a.ring()
}
