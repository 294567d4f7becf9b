package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/wording"
)

// canAsk reports whether a user can answer questions on a terminal.
func (s surroundings) canAsk() bool {
	in, ok := s.stdin.(*os.File)
	return ok && isatty.IsTerminal(in.Fd()) && isTerminal(s.stderr)
}

// ask asks a question on the terminal. The answer is empty without a terminal, at the end of the input, and
// if ctx ends.
func (s surroundings) ask(ctx context.Context, question string) string {
	if !s.canAsk() {
		return ""
	}
	fmt.Fprint(s.stderr, question+" ")
	answers := make(chan string, 1)
	go func() { // ends with the process if nobody answers
		line, _ := bufio.NewReader(s.stdin).ReadString('\n')
		answers <- strings.TrimSpace(line)
	}()
	select {
	case answer := <-answers:
		return answer
	case <-ctx.Done():
		fmt.Fprintln(s.stderr)
		return ""
	}
}

// confirm asks a question. The answer is no unless the user says yes.
func (s surroundings) confirm(ctx context.Context, question string) bool {
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(s.ask(ctx, question+" [y/N]")))
}

// withoutYes is the reason why nothing is deleted if no user can be asked.
const withoutYes = "--yes was not given"

// confirmApply shows on a terminal what an apply would do, and asks the user. An apply then runs exactly
// the plan that was shown. Without a terminal it does not ask, and weir deletes nothing.
func confirmApply(ctx context.Context, s surroundings, w *workspace.Workspace) (agreed bool, err error) {
	if !s.canAsk() {
		w.Deletions = withoutYes
		return true, nil
	}
	w.Decided = true
	w.RetryFailed()
	reports := w.Pass(ctx, reconciler.PlanOnly)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	p := s.printer(s.stderr)
	w.Agreed = map[string]*model.Agreement{}
	steps, gone := 0, []string{}
	for _, r := range reports {
		p.Plan(r)
		if r.Plan == nil {
			continue
		}
		a := plan.AgreementOf(r.Plan)
		w.Agreed[r.Target] = &a
		steps += r.Plan.Runnable()
		gone = append(gone, deleted(r.Plan)...)
	}
	switch {
	case steps == 0:
		return true, nil // there may be something to wait for
	case len(gone) == 0:
		return s.confirm(ctx, fmt.Sprintf("Apply %s?", wording.Count(steps, "step"))), nil
	}
	fmt.Fprintf(s.stderr, "This deletes the following, with machines:\n")
	for _, what := range gone {
		fmt.Fprintf(s.stderr, "  %s\n", wording.Clean(what))
	}
	number := strconv.Itoa(len(gone))
	return s.ask(ctx, "To apply, type the number of deletions ("+number+"):") == number, nil
}

// deleted names the resources that a plan deletes now, or after a hold ends. It omits launch templates,
// which are deleted with their groups.
func deleted(p *plan.Plan) (out []string) {
	for _, st := range p.Steps {
		if st.Verb == step.Delete && st.Resource != step.LaunchTemplate && st.Held != step.HeldPruneLimit && st.Held != step.HeldConflict {
			text := fmt.Sprintf("%s %s of pool %s in target %s", st.Resource, st.Name, st.Pool, p.Target)
			if st.Instances > 0 {
				text += " (" + wording.Count(st.Instances, "instance") + ")"
			}
			out = append(out, text)
		}
	}
	return out
}
