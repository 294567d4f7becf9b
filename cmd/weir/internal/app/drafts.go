package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/nearest"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/upload"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/pulls"
	"github.com/weir-gitops/weir/status/report"
)

// planDraft plans a work tree that a user sent, like a pull request from a fork: it trusts no content,
// stores nothing, and shows nothing to other users.
func (s *site) planDraft(ctx context.Context, d commands.Draft) (*commands.Planned, error) {
	slices.Sort(d.Targets)
	d.Targets = slices.Compact(d.Targets)
	end, err := s.drafts.Begin(d.By)
	if err != nil {
		return nil, busy(err)
	}
	defer end()
	c, base := s.now.compared()
	if base == nil {
		return nil, busy(pulls.ErrEarly)
	}
	from, err := c.SourceOf(d.Targets, d.Repositories)
	if wrong := config.AsSourceError(err); wrong != nil {
		return nil, &gates.Fault{Message: wrong.Message, Hint: wrong.Hint}
	}
	followed := base.View(from.Name).Snapshot
	if followed.Revision == "" {
		return nil, busy(pulls.ErrEarly)
	}
	tree, err := upload.Unpack(d.Archive)
	var wrong *upload.Error
	if errors.As(err, &wrong) {
		return nil, &gates.Fault{Message: wrong.Message, Hint: wrong.Hint}
	}
	if err != nil {
		return nil, err
	}
	// Nothing was decrypted. The secrets in the draft belong to its sender, and must not redact texts of
	// other users.
	own := &redact.Registry{}
	review, reports, err := s.drafts.Plan(ctx, base, fleet.Proposal{
		Secrets: own,
		Source:  from.Name, Owner: "draft of " + d.By, Only: d.Targets, Head: &snapshot.Snapshot{},
		Snapshot: snapshot.Snapshot{Revision: "draft", Tree: tree},
	})
	switch {
	case errors.Is(err, pulls.ErrRoleless):
		return nil, &gates.Fault{Message: err.Error(), Hint: "uploaded work trees are planned with a role of their own: set planRoleARN in weir's configuration"}
	case err != nil:
		return nil, busy(err)
	}
	for _, name := range d.Targets {
		if !slices.Contains(review.Names, name) {
			return nil, noTarget(name, from.Name, review.Names)
		}
	}
	out := &commands.Planned{
		Schema: "weir.dev/plans/v1", Plans: []*plan.Plan{}, Source: from.Name, Against: followed.Revision, Locations: map[string]commands.Location{},
		Gone: review.Gone, Withheld: review.Withheld,
	}
	if len(d.Targets) == 0 {
		out.Unaffected = review.Targets - len(review.Touched)
	}
	s.addPlans(out, reports, own)
	return out, nil
}

// addPlans adds the plans of reports, without the secrets of the daemon and of the draft.
func (s *site) addPlans(out *commands.Planned, reports []*plan.Report, own *redact.Registry) {
	for _, r := range reports {
		r = report.Redact(func(text string) string { return s.redact(own.Redact(text)) }).Report(r)
		out.Plans = append(out.Plans, r.Shown())
		out.Locations[r.Target] = commands.Location{Account: r.Account, Region: r.Region}
	}
}

// busy returns commands.ErrBusy for a temporary error, otherwise the error itself.
func busy(err error) error {
	if errors.Is(err, pulls.ErrBusy) || errors.Is(err, pulls.ErrEarly) {
		return fmt.Errorf("%w: %v", commands.ErrBusy, err) //nolint:errorlint // only the fact that it is temporary matters
	}
	return err
}

func noTarget(name, of string, names []string) error {
	hint := "the targets are " + strings.Join(names, ", ")
	if near := nearest.Word(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return &gates.Fault{Message: fmt.Sprintf("source %[2]s has no target %[1]q", name, of), Hint: hint}
}
