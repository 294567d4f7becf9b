package app

import (
	"cmp"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/pulls"
)

// webhooks configures the webhooks of a configuration.
type webhooks struct {
	receiver  *forge.Receiver
	forges    []config.Forge
	followers follow.Sources
	publisher *publisher
	member    *membership.Member
}

// set configures the receiver of webhooks with the current planners of pull requests.
func (h *webhooks) set() {
	hooks := map[string]forge.Hook{}
	for _, f := range h.forges {
		if f.WebhookSecretFile == "" {
			continue
		}
		follower := h.followers[f.Source]
		hook := forge.Hook{
			Kind: f.Profile().Kind, SecretFile: f.WebhookSecretFile, Address: cmp.Or(f.URL, follower.Config.URL), Source: follower,
		}
		if w := h.publisher.review.watcher(f.Source); w != nil {
			hook.Pulls, hook.Self = w, w.Self()
			if h.member != nil {
				hook.Pulls = pullHints{h.publisher.review.watcher, follower}
			}
		}
		hooks[f.Source] = hook
	}
	h.receiver.Set(hooks)
}

// pullHints passes webhooks about pull requests to the member that owns the source.
type pullHints struct {
	watcher func(source string) *pulls.Watcher
	of      *follow.Source
}

// Changed implements forge.Pulls.
func (h pullHints) Changed(number int64) {
	source := h.of.Config.Name
	if w := h.watcher(source); w != nil && h.of.Leads() {
		w.Changed(number)
		return
	}
	h.of.Member.Requests.SendSoon(membership.Request{Source: source, Pulls: true, Pull: number})
}

// Heard implements forge.Pulls. All members store the comment, because any of them may read it later.
func (h pullHints) Heard(number int64, comment forge.Heard) {
	heard := membership.Heard(comment)
	h.of.Member.Requests.SendSoon(membership.Request{Source: h.of.Config.Name, Pulls: true, Pull: number, Heard: &heard})
}
