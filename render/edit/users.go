package edit

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/weir-gitops/weir/render/tree"
)

// maxEntries bounds the entries of a tree that are searched for the users of a file.
const maxEntries = 500_000

// users maps files and directories to the directories whose kustomizations use them.
type users struct {
	// of has the directories whose kustomizations refer to a path, which is a file or a directory.
	of map[string][]string
	// built has the directories with a kustomization. The value is true for a component.
	built map[string]bool
	links map[string]string // the tree's symlinks, with their targets
}

// usersOf reads all kustomizations of a tree. A kustomization that cannot be read affects nothing.
func usersOf(ctx context.Context, t tree.Tree) (*users, error) {
	u := &users{of: map[string][]string{}, built: map[string]bool{}, links: map[string]string{}}
	named := map[string][]string{} // paths, by directory
	left := maxEntries
	var walk func(dir string) error
	walk = func(dir string) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		entries, err := t.ReadDir(dir)
		if err != nil {
			return err
		}
		if left -= len(entries); left < 0 {
			return fmt.Errorf("find who uses a file: the tree has more than %d entries", maxEntries)
		}
		for _, e := range entries {
			p := path.Join(dir, e.Name)
			switch {
			case e.Mode == tree.Dir:
				if err := walk(p); err != nil {
					return err
				}
			case e.Mode == tree.Symlink:
				to, err := t.ReadFile(p)
				if err != nil {
					return err
				}
				u.links[p] = path.Join(dir, string(to))
			case e.Mode.IsFile() && slices.Contains(konfig.RecognizedKustomizationFileNames(), e.Name) && e.Size < 1<<20:
				content, err := t.ReadFile(p)
				if err != nil {
					continue // too large or missing, so it cannot be built
				}
				var k kustomization
				_ = yaml.Unmarshal(content, &k) // fields before an error are kept
				u.built[dir] = k.Kind == "Component"
				u.of[p] = append(u.of[p], dir)
				named[dir] = k.paths()
			}
		}
		return nil
	}
	if err := walk("."); err != nil {
		return nil, err
	}
	for dir, paths := range named {
		for _, p := range paths {
			if !strings.Contains(p, "://") && !path.IsAbs(p) && !strings.Contains(p, "\n") {
				to := u.follow(path.Join(dir, p))
				u.of[to] = append(u.of[to], dir)
			}
		}
	}
	return u, nil
}

// follow resolves symlinks in a path.
func (u *users) follow(p string) string {
	if len(u.links) == 0 {
		return p
	}
	for range 40 {
		again := false
		for at := p; at != "." && at != "/" && !again; at = path.Dir(at) {
			if to, ok := u.links[at]; ok {
				p, again = path.Join(to, strings.TrimPrefix(p, at)), true
			}
		}
		if !again {
			break
		}
	}
	return p
}

// reach returns the paths whose builds read a file.
func (u *users) reach(file string) map[string]bool {
	out := map[string]bool{}
	todo := []string{file}
	if dir := path.Dir(file); !u.has(dir) {
		todo = append(todo, dir) // without a kustomization, the files of the directory are read
	}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		if out[p] {
			continue
		}
		out[p] = true
		todo = append(todo, u.of[p]...)
	}
	return out
}

func (u *users) has(dir string) bool { _, ok := u.built[dir]; return ok }

// otherKustomization returns a directory in reached that can be built and is none of the places, or "".
func (u *users) otherKustomization(reached map[string]bool, places []Place) string {
	var found []string
	for p := range reached {
		if component, built := u.built[p]; built && !component && len(u.of[p]) == 0 && !slices.ContainsFunc(places, func(at Place) bool { return path.Clean(at.Dir) == p }) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// kustomization has the fields of a kustomization that refer to files and directories.
type kustomization struct {
	Kind            string   `yaml:"kind"`
	Resources       []string `yaml:"resources"`
	Bases           []string `yaml:"bases"`
	Components      []string `yaml:"components"`
	CRDs            []string `yaml:"crds"`
	Configurations  []string `yaml:"configurations"`
	Generators      []string `yaml:"generators"`
	Transformers    []string `yaml:"transformers"`
	Validators      []string `yaml:"validators"`
	StrategicMerges []string `yaml:"patchesStrategicMerge"`
	Patches         []named  `yaml:"patches"`
	JSONPatches     []named  `yaml:"patchesJson6902"`
	Replacements    []named  `yaml:"replacements"`
	OpenAPI         named    `yaml:"openapi"`
}

type named struct {
	Path string `yaml:"path"`
}

func (k *kustomization) paths() []string {
	out := slices.Concat(k.Resources, k.Bases, k.Components, k.CRDs, k.Configurations, k.Generators, k.Transformers, k.Validators, k.StrategicMerges)
	for _, n := range slices.Concat(k.Patches, k.JSONPatches, k.Replacements, []named{k.OpenAPI}) {
		if n.Path != "" {
			out = append(out, n.Path)
		}
	}
	return out
}
