package app

import (
	"context"
	"reflect"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/notify"
)

// notify hands events to the notifier of the current configuration. It never blocks.
func (a *App) notify(events []events.Event) {
	a.metrics.Events(events)
	if n := a.notifier.Load(); n != nil {
		n.Add(events)
	}
}

// openNotifier makes what sends events, or keeps the earlier one if the
// configuration says the same of it.
func (g *generation) openNotifier(a *App, earlier *generation) error {
	if earlier != nil && reflect.DeepEqual(earlier.config.Notify, g.config.Notify) {
		g.notifier, g.stopNotifier = earlier.notifier, earlier.stopNotifier
		return nil
	}
	if len(g.config.Notify) == 0 {
		return nil
	}
	o := notify.Options{
		Instance: g.config.Instance, Logger: a.log, Version: a.o.Version,
		Sent: a.metrics.Notification,
	}
	for _, n := range g.config.Notify {
		o.Receivers = append(o.Receivers, notify.Receiver{URL: n.URL, SecretFile: n.SecretFile, Events: n.Events})
	}
	var err error
	g.notifier, err = notify.New(o)
	return err
}

// startNotifier sends events to the receivers of this generation alone.
func (g *generation) startNotifier(ctx context.Context, a *App) {
	a.notifier.Store(g.notifier)
	if g.notifier != nil && g.stopNotifier == nil {
		g.stopNotifier = a.spawn(ctx, "notifications", g.notifier.Run)
	}
}

// haltNotifier ends the sending, with what can be sent in a moment.
func (g *generation) haltNotifier(ctx context.Context) error {
	if g.stopNotifier == nil {
		return nil
	}
	return g.stopNotifier(ctx)
}
