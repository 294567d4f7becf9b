package app

import (
	"fmt"
	"log/slog"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
)

// approvals changes the records of approvals for passes.
type approvals struct {
	recorder *gates.Recorder
	activity *current.Activity
	log      *slog.Logger
}

// severalPlans is an approval of several plans that are all ready.
type severalPlans struct {
	approval gates.Approval
	ready    []gates.Grant
}

// split splits approvals of several plans. It returns the reasons why it could not, and logs only reasons
// that are not in said.
func (a approvals) split(list []severalPlans, said map[string]bool) map[string]bool {
	unused := map[string]bool{}
	for _, s := range list {
		if err := a.recorder.Split(s.approval, s.ready); err != nil {
			text := err.Error()
			if !said[text] && !unused[text] {
				a.log.Error("an approval waits until it can be written to the state directory", "digest", s.approval.Digest, "error", err)
			}
			unused[text] = true
		}
	}
	return unused
}

// supersede ends partly applied approvals of targets whose desired resources have changed.
func (a approvals) supersede(ended []gates.Grant) error {
	if err := a.recorder.Supersede(ended); err != nil {
		return err
	}
	for _, g := range ended {
		a.activity.Add(events.Event{Kind: "approval-ended", Target: g.Target, Text: fmt.Sprintf(
			"the approval by %s of the plan %.12s at %.12s has ended: the target now wants something else, and the remaining steps need their own approval", g.By, g.Digest, g.Revision)})
	}
	return nil
}
