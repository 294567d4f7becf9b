package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/importer"
	"github.com/weir-gitops/weir/reconciler/importer/factor"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/status/wording"
)

// factored is the repository that was written instead of a file for each pool.
type factored struct {
	factor.Repository
	// Lines is the number of lines of YAML. Flat is the number of lines with a separate file for each pool.
	Lines, Flat int
}

// factor writes a repository with bases and overlays instead of the flat manifests, if kustomize builds the
// same objects from it. Otherwise the flat manifests stay, and why describes the difference.
func (f *importFlags) factor(ctx context.Context, state observed.State, pools []importer.Pool, dir string) (out *factored, why string, err error) {
	flat, err := readFiles(dir)
	if err != nil {
		return nil, "", err
	}
	secrets := map[string][]byte{}
	for name := range importer.Secrets(pools) {
		secrets[name] = []byte(flat[name])
	}
	r := importer.Repository(state, pools, secrets)
	files := tree.Map{}
	for name, text := range r.Files {
		files[name] = string(text)
	}
	why, err = sameObjects(ctx, flat, files, r.Overlays)
	if err != nil || why != "" {
		return nil, why, err
	}
	out = &factored{Repository: r}
	out.Lines, out.Flat = yamlLines(files), yamlLines(flat)
	r.Files["README.md"] = readme(f.region, state.Account, r)
	if err := writeFiles(dir, r.Files); err != nil {
		return nil, "", err
	}
	importer.Place(pools, r)
	return out, "", nil
}

// sameObjects describes how the objects of all overlays differ from the objects of a directory, "" if they do
// not.
func sameObjects(ctx context.Context, flat, files tree.Map, overlays []string) (why string, err error) {
	want, why, err := buildObjects(ctx, flat, ".")
	if err != nil || why != "" {
		return why, err
	}
	for _, dir := range overlays {
		got, why, err := buildObjects(ctx, files, dir)
		if err != nil || why != "" {
			return why, err
		}
		for id, text := range got {
			if want[id] != text {
				return "kustomize builds different objects from " + id + " in " + dir, nil
			}
			delete(want, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		return id + " would be in no overlay", nil
	}
	return "", nil
}

// buildObjects builds a directory with kustomize and returns its objects as JSON, by identity. Encrypted
// values get placeholders. If the objects cannot be compared, why is the reason, and the import goes on with
// manifests without bases. An error ends the import.
func buildObjects(ctx context.Context, files tree.Map, dir string) (objects map[string]string, why string, err error) {
	r, err := kust.Build(ctx, files, dir, kust.Options{Decrypter: sops.New(sops.Options{Placeholders: true})})
	if err != nil {
		return nil, "", err
	}
	for _, d := range r.Diags {
		if d.Severity == diag.Error {
			return nil, "kustomize refuses it: " + d.Summary, nil
		}
	}
	objects = map[string]string{}
	for _, o := range r.Objects {
		var value any
		if err := o.Node.Decode(&value); err != nil {
			return nil, "", fmt.Errorf("read what kustomize gives: %w", err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, "what kustomize gives cannot be compared: " + err.Error(), nil
		}
		objects[o.Ref.String()] = string(text)
	}
	return objects, "", nil
}

// readFiles returns the files below a directory.
func readFiles(dir string) (tree.Map, error) {
	out := tree.Map{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(name) //nolint:gosec // it was just written
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		out[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	return out, nil
}

func yamlLines(files tree.Map) (n int) {
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") {
			n += strings.Count(text, "\n")
		}
	}
	return n
}

// targets returns the entries of a configuration for overlays.
func targets(region, account string, overlays []string) string {
	var b strings.Builder
	for _, dir := range overlays {
		fmt.Fprintf(&b, "- {name: %q, source: fleet, path: %s, region: %s, accountID: %q}\n", path.Base(dir), dir, region, account)
	}
	return b.String()
}

// readme explains the directories to a reader of the repository.
func readme(region, account string, r factor.Repository) []byte {
	var b bytes.Buffer
	b.WriteString("# Pools of machines\n\nMade by `weir import` from what runs in " + region + ".\n\n| Directory | Holds |\n| --- | --- |\n")
	if len(r.Bases) > 0 {
		b.WriteString("| `bases/NAME/` | the common settings of the pools that use this base |\n")
	}
	b.WriteString("| `overlays/CLUSTER/` | the target of a cluster: its pools, and their common settings |\n")
	if len(r.Bases) > 0 {
		b.WriteString("| `overlays/CLUSTER/pools/NAME/` | a pool: its base, its name, and its differences from the base |\n")
	}
	b.WriteString("| `overlays/CLUSTER/pools/NAME.yaml` | a pool without a base |\n")
	if len(r.Bases) > 0 {
		b.WriteString("| `references/` | the fields with names of other objects, which kustomize changes when it renames a pool |\n")
	}
	b.WriteString(`
A change goes where it belongs: into a base for all of its pools, into the overlay for a cluster, into a pool's directory for that pool alone. Desired sizes are not written, as an autoscaler may set them. The launch template that an annotation names (` + "`node.k8s.aws/launch-template-name`" + `) belongs to somebody else: weir reads it and never changes it.

To add a pool with a base, copy the directory of another pool, change ` + "`namePrefix` or `nameSuffix`, and list it in the overlay's `kustomization.yaml`" + `.

` + "```" + `
weir validate .
weir plan . --region ` + region + `
` + "```" + `

## Targets

Add these targets to weir's configuration, which is outside the repository:

` + "```yaml\ntargets:\n")
	b.WriteString(targets(region, account, r.Overlays))
	b.WriteString("```\n")
	return b.Bytes()
}

// tellFactored prints a description of the directory.
func (f *importFlags) tellFactored(s surroundings, r *factored, why string) {
	if r == nil {
		if why != "" {
			fmt.Fprintln(s.stdout, wording.Clean("A file for each pool was written, without bases: "+why+". Report it."))
		}
		return
	}
	share := ""
	if r.Flat > 0 {
		share = fmt.Sprintf(", %d %% of the lines without bases", r.Lines*100/r.Flat)
	}
	pools := map[string]int{}
	for _, at := range r.Pools {
		pools[strings.SplitN(at, "/", 3)[1]]++
	}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		if pools[name] > factor.MaxOverlayPools {
			fmt.Fprintf(s.stdout, "overlays/%s has %d pools, more than %d: each is a file of its own, because kustomize is slow for so many pools with bases.\n", name, pools[name], factor.MaxOverlayPools)
		}
	}
	fmt.Fprintf(s.stdout, "%s, %s, %d lines%s.\n", wording.Count(len(r.Overlays), "overlay"), wording.Count(len(r.Bases), "base"), r.Lines, share)
	for _, base := range r.Bases {
		fmt.Fprintf(s.stdout, "  bases/%s: %s\n", base.Name, wording.Count(len(base.Pools), "pool"))
	}
	fmt.Fprintln(s.stdout, "README.md there has the targets for the configuration.")
}

var errNoPlace = errors.New("there is no such directory")

// writable returns an error early if a directory cannot be created.
func writable(dir string) error {
	parent := filepath.Dir(filepath.Clean(dir))
	switch info, err := os.Stat(parent); {
	case errors.Is(err, fs.ErrNotExist):
		return hinted(fmt.Errorf("make %s: %w", dir, errNoPlace), "make "+parent+" first")
	case err == nil && !info.IsDir():
		return hinted(fmt.Errorf("make %s: %s is not a directory", dir, parent), "name a place in a directory")
	}
	return nil
}
