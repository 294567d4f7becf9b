package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weir-gitops/weir/reconciler/importer/terraform"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/wording"
)

// maxState is the maximum size of a state, in bytes.
const maxState = 512 << 20

// readTerraform reads the state that a flag names.
func readTerraform(path string) (terraform.State, error) {
	if scheme, _, remote := strings.Cut(path, "://"); remote {
		return terraform.State{}, usage("terraform state pull >state.json, and name that file", "--from-terraform: weir cannot read a state from %s://", wording.Clean(scheme))
	}
	file, err := os.Open(path) //nolint:gosec // the user chose the path
	if err != nil {
		return terraform.State{}, hinted(fmt.Errorf("--from-terraform: %w", err), "terraform state pull >state.json writes it")
	}
	defer func() { _ = file.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(file, maxState+1))
	if err == nil && len(text) > maxState {
		err = fmt.Errorf("%s has more than %d MiB", path, maxState>>20)
	}
	if err != nil {
		return terraform.State{}, fmt.Errorf("--from-terraform: %w", err)
	}
	state, err := terraform.Read(text)
	var wrong *terraform.Error
	if errors.As(err, &wrong) {
		return state, hinted(fmt.Errorf("--from-terraform %s: %w", path, err), wrong.Do)
	}
	return state, err
}

// resourcesIn returns the part of a state in an account and region, or an error if that is empty. It lists the
// resources in other regions by calling line.
func resourcesIn(state terraform.State, path, account, region string, line func(string)) (terraform.State, error) {
	in, elsewhere := state.In(account, region), state.Elsewhere(region)
	if len(in.Resources) > 0 {
		for _, other := range elsewhere {
			line(fmt.Sprintf("%s also has %s in %s: import them separately, with --region %s", path, wording.Count(len(state.In(account, other).Resources), "resource"), other, other))
		}
		return in, nil
	}
	err := fmt.Errorf("%s has no group, nodegroup or launch template of account %s in %s", path, account, region)
	switch accounts := strings.Join(state.Accounts(), ", "); {
	case len(state.Resources) == 0:
		return in, hinted(err, "give --from-terraform the state with your aws_autoscaling_group or aws_eks_node_group resources; terraform state list shows the resources of a state")
	case len(elsewhere) > 0:
		return in, hinted(err, "it has resources of account "+cmp.Or(accounts, "(unknown)")+" in "+strings.Join(elsewhere, ", ")+": give one of these regions with --region")
	default:
		return in, hinted(err, "it has resources of account "+accounts+": give credentials of that account")
	}
}

// printRemovedBlocks prints, before an adoption, the removed blocks with which Terraform forgets the
// resources that the plans in reports will adopt. If the output is not text, the blocks go to standard error.
func printRemovedBlocks(s surroundings, output string, state terraform.State, reports []*plan.Report) {
	adopting := map[string]bool{}
	key := func(region string, r step.Resource, name string) string { return region + " " + string(r) + " " + name }
	for _, r := range reports {
		if r.Plan == nil {
			continue
		}
		for _, st := range r.Plan.Steps {
			if st.Verb == step.Adopt && st.Held == "" {
				adopting[key(r.Region, st.Resource, nameInAWS(&st))] = true
			}
		}
	}
	resources := map[terraform.Kind]step.Resource{terraform.Group: step.AutoScalingGroup, terraform.Nodegroup: step.ManagedNodegroup, terraform.LaunchTemplate: step.LaunchTemplate}
	blocks := state.Removed(func(r terraform.Resource) bool {
		name := r.InAWS
		if r.Kind == terraform.Nodegroup {
			name = r.ID
		}
		for _, report := range reports {
			if (r.Region == "" || r.Region == report.Region) && adopting[key(report.Region, resources[r.Kind], name)] {
				return true
			}
		}
		return false
	})
	w := s.stdout
	if output != outputText {
		w = s.stderr
	}
	if blocks == "" {
		fmt.Fprintln(w, "The Terraform state has none of the adopted resources.")
		return
	}
	fmt.Fprintln(w, "# Write this in place of these resources (Terraform 1.7 or newer); terraform plan must then say \"0 to destroy\":")
	for line := range strings.Lines(blocks) {
		fmt.Fprintln(w, visible.Text(strings.TrimSuffix(line, "\n")))
	}
	fmt.Fprintln(w)
}

// nameInAWS returns the name of the resource that a step adopts; for a nodegroup CLUSTER/NAME.
func nameInAWS(st *step.Step) string {
	if t, ok := st.Do.(step.TagNodegroup); ok {
		return t.String()
	}
	return st.Name
}
