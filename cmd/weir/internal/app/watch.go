package app

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// watchNamed watches the files that the configuration names, until stop
// is called: a new value starts a pass, a new token is tried at once, and new
// certificates are taken by a reload.
func (g *generation) watchNamed(ctx context.Context) (stop func()) {
	var values, tokens, credentials, certificates []string
	for _, t := range g.config.Targets {
		for _, from := range t.VarsFrom {
			values = append(values, from.Files()...)
		}
	}
	for _, f := range g.config.Forges {
		tokens = append(tokens, f.TokenFile)
	}
	for _, s := range g.config.Sources {
		credentials = append(credentials, s.WatchedFiles()...)
		certificates = append(certificates, s.ConnectionFiles()...)
		tokens = append(tokens, s.Auth.GitHubApp.PrivateKeyFile)
	}
	stops := []func(){
		g.app.watch(ctx, values, g.app.passAll),
		g.app.watch(ctx, certificates, g.app.configChanged),
		g.app.watch(ctx, tokens, func() {
			if g.commits != nil {
				g.commits.Retry()
			}
			g.review.retry()
		}),
		g.app.watch(ctx, credentials, func() {
			for _, f := range g.followers {
				f.git.Nudge()
			}
		}),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// watch calls changed after any of the files has changed, until stop is called,
// which waits for the end.
func (a *App) watch(ctx context.Context, files []string, changed func()) (stop func()) {
	files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" })
	if len(files) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch := a.o.Watch
		if watch == nil {
			watch = config.Watch
		}
		if err := watch(ctx, files, changed); err != nil {
			// They are read at the next pass, and a signal reloads.
			a.log.Error("changes of files are not seen at once", "files", files, "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
