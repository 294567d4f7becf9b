package app

import (
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/notify"
)

// notify hands events to the notifier of the current configuration. It never blocks.
func (a *App) notify(events []events.Event) {
	a.metrics.Events(events)
	if g := a.gen.Load(); g != nil && g.notifier != nil {
		g.notifier.Add(events)
	}
}

// openNotifier makes the notifier that sends events, if the configuration names a
// receiver.
func (g *generation) openNotifier() (err error) {
	if len(g.config.Notify) == 0 {
		return nil
	}
	o := notify.Options{
		Instance: g.config.Instance, Logger: g.app.log, Version: g.app.o.Version,
		Sent: g.app.metrics.Notification,
	}
	for _, n := range g.config.Notify {
		o.Receivers = append(o.Receivers, notify.Receiver{URL: n.URL, SecretFile: n.SecretFile, Events: n.Events})
	}
	g.notifier, err = notify.New(o)
	return err
}

// takeNotifications takes over those that wait in the generation before.
func (g *generation) takeNotifications(before *generation) {
	left := 0
	switch {
	case before.notifier == nil:
	case g.notifier == nil:
		left = before.notifier.Waiting()
	default:
		left = g.notifier.Inherit(before.notifier)
	}
	if left > 0 {
		g.app.log.Warn("notifications are dropped: their receiver is not configured any more", "count", left)
	}
}
