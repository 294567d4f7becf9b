package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/importer"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/status/wording"
)

// prove writes the manifests below temp, and plans them as they will be after their adoption. It refuses
// pools if their plan has errors or replaces something. It then plans all other pools again, and adds the
// list of changes that apply would make. So import never writes a manifest with which weir would do harm,
// independent of the assumptions of package importer.
func (f *importFlags) prove(c *cobra.Command, s surroundings, state observed.State, pools []importer.Pool, temp string) error {
	dir := filepath.Join(temp, "fleet")
	key, err := age.GenerateX25519Identity() // no secret is ever on the disk unencrypted
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	for {
		files, err := importer.Files(state, pools)
		if err != nil {
			return err
		}
		var hidden []string
		for name, text := range importer.Secrets(pools) {
			hidden = append(hidden, text.Values["value"])
			if files[name], err = sops.SealSecret(c.Context(), time.Now(), text.Name, text.Keys, text.Values, sops.Recipients{Age: []string{key.Recipient().String()}}); err != nil {
				return err
			}
		}
		s.secrets.Set("imported user data", secret.New(hidden...))
		if err := writeFiles(dir, files); err != nil {
			return err
		}
		byKey := map[string]*importer.Pool{}
		for i := range pools {
			if p := &pools[i]; p.State != importer.Refused {
				byKey["default/"+p.Key], p.Conversions = p, nil
			}
		}
		if len(byKey) == 0 {
			return nil
		}
		r, err := f.plan(c, s, dir, key)
		if err != nil {
			return err
		}
		again, err := judge(r, byKey)
		if err != nil || !again {
			return err
		}
	}
}

// seal writes the files of Secrets, encrypted for their recipients.
func (f *importFlags) seal(ctx context.Context, s surroundings, pools []importer.Pool, dir string) error {
	secrets := importer.Secrets(pools)
	if len(secrets) == 0 {
		return nil
	}
	to, mode := f.recipients, fs.FileMode(0o644)
	if f.plain {
		mode = 0o600
	}
	if len(to.KMSKeyARNs) > 0 {
		kms := awscloud.NewKMS(accounts.New(accounts.Options{Logger: s.quiet(), Getenv: s.getenv}).Options(reconciler.ScopeKey{Region: f.region, RoleARN: f.role, Endpoint: f.endpoint}))
		defer kms.Close()
		to.KMS = kms
	}
	for name, of := range secrets {
		text, err := of.Plain()
		if !f.plain {
			text, err = sops.SealSecret(ctx, time.Now(), of.Name, of.Keys, of.Values, to)
		}
		if err != nil {
			return hinted(err, "the credentials need kms:Encrypt on the key; or encrypt for --age")
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
		if err := os.WriteFile(path, text, mode); err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
	}
	return nil
}

// plan plans the adoption of a directory.
func (f *importFlags) plan(c *cobra.Command, s surroundings, dir string, key age.Identity) (*plan.Report, error) {
	flags := passFlags{endpoint: f.endpoint}
	env := flags.env(s, s.quiet())
	env.Note = func(string) {} // its notes would be about a temporary directory
	w, err := workspace.OpenPath(c.Context(), env, workspace.Path{
		Path: dir, Region: f.region, Target: "import", Instance: fleet.PathInstance,
		Inputs: func() (workspace.Inputs, error) { return workspace.Inputs{Identities: []age.Identity{key}}, nil },
	})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := w.AdoptOnly("", nil); err != nil {
		return nil, err
	}
	reports := w.Pass(c.Context(), reconciler.PlanOnly)
	if err := c.Context().Err(); err != nil {
		return nil, err
	}
	if len(reports) != 1 {
		return nil, fmt.Errorf("plan the imported manifests: %d reports", len(reports))
	}
	return reports[0], reports[0].Err
}

// judge refuses pools based on their part of the plan, and reports whether it refused any.
func judge(r *plan.Report, pools map[string]*importer.Pool) (refused bool, err error) {
	j := &judgement{pools: pools, refused: map[*importer.Pool]bool{}}
	other := j.faults(r.Diagnostics)
	if r.Plan != nil {
		for i := range r.Plan.Steps {
			j.step(&r.Plan.Steps[i], r.Plan)
		}
	}
	switch {
	case len(j.refused) > 0:
		return true, nil
	case len(other) > 0:
		return false, fmt.Errorf("plan the imported manifests: %w", errors.Join(other...))
	case r.Plan == nil:
		return false, errors.New("the imported manifests could not be planned")
	}
	return false, nil
}

// judgement finds pools whose manifests weir cannot use. refused contains the pools that it has refused: the plan
// was made with their manifests, so the caller plans again without them.
type judgement struct {
	pools   map[string]*importer.Pool
	refused map[*importer.Pool]bool
}

// refuse refuses a pool for a reason. It changes nothing for a pool that is refused already.
func (j *judgement) refuse(p *importer.Pool, why string) {
	if p.State != importer.Refused && !j.refused[p] {
		*p, j.refused[p] = p.Refuse(why), true
	}
}

// faults refuses the pools whose manifests have errors, and returns the errors of no pool.
func (j *judgement) faults(diagnostics diag.List) (other []error) {
	for _, d := range diagnostics {
		if d.Severity != diag.Error {
			continue
		}
		matched := false
		for _, p := range j.pools {
			if strings.HasSuffix(filepath.ToSlash(d.File), "/"+p.File) || strings.HasSuffix(d.Object, " default/"+p.Key) {
				matched = true
				j.refuse(p, "its manifests would not be valid: "+d.Summary)
			}
		}
		if !matched {
			other = append(other, errors.New(d.Summary))
		}
	}
	return other
}

// step refuses the pool of a step that would change its launch configuration, and lists other changes of
// the step as a conversion.
func (j *judgement) step(st *step.Step, of *plan.Plan) {
	p := j.pools[st.Pool]
	if st.Verb == step.Adopt || p == nil || p.State == importer.Refused || j.refused[p] {
		return
	}
	makesOwn := st.Verb == step.Create && st.Resource == step.LaunchTemplate && p.Owned
	switch {
	case makesOwn && !gives(p, st):
		j.refuse(p, "the launch template from its manifests would differ from the current one"+differing(p, of))
	case makesOwn:
		p.Conversions = append(p.Conversions, "what it launches from: the launch template "+st.Name+" is made with what it launches now, and machines stay; new ones get the pool's tags")
	case st.Verb == step.Update && !st.Disruptive:
		for _, text := range changesOf(st) {
			if !slices.Contains(p.Conversions, text) {
				p.Conversions = append(p.Conversions, text)
			}
		}
	case st.Verb == step.Rollout && differing(p, of) != "":
		j.refuse(p, "its manifests could not express what it launches now"+differing(p, of))
	case st.Verb == step.Rollout:
		j.refuse(p, "weir would replace machines ("+st.Reason+"): replace them by an instance refresh, and then import the group")
	default:
		j.refuse(p, "its manifests would change it: "+string(st.Verb)+" "+string(st.Resource)+" "+st.Name+": "+strings.Join(changesOf(st), "; "))
	}
}

// differing names the differences between the launch configuration in a plan and the pool's current one. It
// is empty if nothing differs, or if the pool's manifests do not contain the launch configuration.
func differing(p *importer.Pool, of *plan.Plan) string {
	if !p.Owned {
		return ""
	}
	for i := range of.Steps {
		st := &of.Steps[i]
		var fields []string
		switch made := st.Do.(type) {
		case step.CreateLaunchTemplate:
			fields = p.Differs(made.Data)
		case step.CreateLaunchTemplateVersion:
			fields = p.Differs(made.Data)
		}
		if st.Pool == "default/"+p.Key && len(fields) > 0 {
			return ": " + strings.Join(fields, ", ") + " would differ"
		}
	}
	return ""
}

// gives reports whether the launch template that a step creates matches the pool's launch configuration.
func gives(p *importer.Pool, st *step.Step) bool {
	made, ok := st.Do.(step.CreateLaunchTemplate)
	return ok && p.Gives(made.Data)
}

// changesOf describes the changes of a step.
func changesOf(st *step.Step) (out []string) {
	for _, ch := range st.Changes {
		out = append(out, ch.Field+" of "+string(st.Resource)+" "+st.Name+": "+wording.Value(ch.From)+" → "+wording.Value(ch.To))
	}
	if len(out) == 0 {
		out = append(out, string(st.Resource)+" "+st.Name+": "+st.Reason)
	}
	return out
}

// writeFiles deletes and creates a directory, and writes files below it.
func writeFiles(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // manifests are for everyone to read, as what git checks out
			return fmt.Errorf("write manifests: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("write manifests: %w", err)
		}
	}
	return nil
}
