package app

import (
	"cmp"
	"context"
	"errors"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/notify"
)

// publisher sends results to forges and to the receivers of events. Parts that the configuration does not
// enable are nil.
type publisher struct {
	// forges contains the forges for commit statuses, by source.
	forges   map[string]commits.Forge
	commits  *commits.Commits
	review   *review
	notifier *notify.Notifier
	// statuses and pulls are the options for commits and review.
	statuses commits.Options
	pulls    reviewOptions
	// shared says that several daemons share the sources. The next owner of a source then writes the
	// statuses that this daemon has not written.
	shared bool
}

// check returns an error if openStatuses would fail.
func (p *publisher) check() error {
	if len(p.forges) == 0 {
		return nil
	}
	return commits.Check(p.statuses.Store)
}

// openStatuses reads the journal, if there is a forge.
func (p *publisher) openStatuses() (err error) {
	if len(p.forges) == 0 {
		return nil
	}
	p.commits, err = commits.New(p.statuses)
	return err
}

// openPulls creates the planners of pull requests, if the configuration enables them.
func (p *publisher) openPulls() (err error) {
	p.review, err = openReview(p.pulls)
	return err
}

// openNotifier creates the notifier, which sends events, if the configuration contains a receiver.
func (p *publisher) openNotifier(receivers []config.Notify, o notify.Options) (err error) {
	if len(receivers) == 0 {
		return nil
	}
	for _, n := range receivers {
		o.Receivers = append(o.Receivers, notify.Receiver{URL: n.URL, SecretFile: n.SecretFile, Events: n.Events})
	}
	p.notifier, err = notify.New(o)
	return err
}

// report sends a report to commits and pull requests.
func (p *publisher) report(ctx context.Context, r *plan.Report) {
	if p.commits != nil {
		p.commits.Report(ctx, r)
	}
	p.review.reported(r)
}

// notify passes events to the notifier. It never blocks.
func (p *publisher) notify(events []events.Event) {
	if p.notifier != nil {
		p.notifier.Add(events)
	}
}

// retry retries writes that a forge refused.
func (p *publisher) retry() {
	if p.commits != nil {
		p.commits.Retry()
	}
	p.review.retry()
}

// takeOver makes this daemon write the statuses of a source. It continues from the state of the previous
// owner.
func (p *publisher) takeOver(source string) (errs []error) {
	if p.commits != nil {
		errs = append(errs, p.commits.TakeOver(source))
	}
	return append(errs, p.review.takeOver(source))
}

// unposted returns the number of waiting commit statuses, and unsent the number of waiting notifications.
func (p *publisher) unposted() int {
	if p.commits == nil {
		return 0
	}
	return p.commits.Pending()
}

func (p *publisher) unsent() int {
	if p.notifier == nil {
		return 0
	}
	return p.notifier.Waiting()
}

// leave allows another publisher to continue. Wanted statuses wait for it in their journals, and
// notifications in their notifier.
func (p *publisher) leave() error {
	var err error
	if p.commits != nil {
		err = p.commits.Leave()
	}
	return errors.Join(err, p.review.leave())
}

// inherit takes over the waiting notifications of another publisher. It returns the number that it dropped,
// because their receiver is no longer configured.
func (p *publisher) inherit(before *publisher) (dropped int) {
	switch {
	case before.notifier == nil:
		return 0
	case p.notifier == nil:
		return before.notifier.Waiting()
	default:
		return p.notifier.Inherit(before.notifier)
	}
}

// closeStatuses posts the wanted statuses, and leaves nothing pending.
func (p *publisher) closeStatuses(ctx context.Context) error {
	switch {
	case p.commits == nil:
		return nil
	case p.shared:
		return p.commits.Leave() // the next owner continues
	}
	return p.commits.Close(ctx)
}

// closePulls posts the remaining states of pull requests.
func (p *publisher) closePulls(ctx context.Context) error { return p.review.close(ctx) }

// closeNotifier tries for a short time to send the waiting notifications.
func (p *publisher) closeNotifier(ctx context.Context) error {
	if p.notifier != nil {
		p.notifier.Close(ctx)
	}
	return nil
}

// makeForges returns the clients of the forges for commit statuses, by source.
func makeForges(c *config.Config, fs follow.Sources, metrics *metrics.Metrics, tracing *telemetry.Tracing) (map[string]commits.Forge, error) {
	out := map[string]commits.Forge{}
	for _, f := range c.Forges {
		if f.Profile().WebhooksOnly {
			continue
		}
		of := fs[f.Source]
		forge, err := follow.NewForge(f, of, cmp.Or(of.Config.Ref.Branch, of.Config.Ref.Tag), metrics)
		if err != nil {
			return nil, err
		}
		out[f.Source] = tracing.Forge(forge)
	}
	return out, nil
}
