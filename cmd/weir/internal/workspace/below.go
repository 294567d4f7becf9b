package workspace

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/render/diag"
)

// deepest is the number of directory levels below a PATH that are searched for manifests.
const deepest = 4

// hintBelow adds a hint if a directory contains no manifests, but directories below it do. The user has
// probably named the parent of the overlays, and a result without faults would be misleading.
func hintBelow(list diag.List, dir string, shown string, pools int) diag.List {
	missing := slices.IndexFunc(list, func(d diag.Diagnostic) bool { return d.Code == "kustomization-missing" && d.Line == 0 })
	if pools > 0 || missing < 0 && list.HasErrors() {
		return list
	}
	found := manifestsBelow(dir)
	if len(found) == 0 {
		return list
	}
	detail := "weir does not search the directories below. These have manifests: " + advice.JoinNames(found) + "; give these, one by one."
	if missing >= 0 {
		list[missing].Detail = detail
		return list
	}
	return append(list, diag.Diagnostic{
		Severity: diag.Warning, Code: "manifests-below", Position: diag.Position{File: shown},
		Summary: "the directory's own files have no pool", Detail: detail,
	})
}

// manifestsBelow returns the directories below dir with a kustomization or, if none exists, with YAML
// files. It returns none if dir itself has a kustomization.
func manifestsBelow(dir string) []string {
	var built, plain []string
	own := false
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		switch {
		case err != nil:
			return fs.SkipDir // ignore unreadable directories
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") && rel != "." || strings.Count(rel, string(filepath.Separator)) >= deepest):
			return fs.SkipDir
		case filepath.Dir(rel) == "." && isKustomization(e.Name()):
			own = true // it names the files below that it uses
			return fs.SkipAll
		case e.IsDir() || filepath.Dir(rel) == ".":
			return nil
		case isKustomization(e.Name()):
			built = append(built, filepath.Dir(p))
		case strings.HasSuffix(e.Name(), ".yaml") || strings.HasSuffix(e.Name(), ".yml"):
			plain = append(plain, filepath.Dir(p))
		}
		return nil
	})
	if own {
		return nil
	}
	if len(built) > 0 {
		return slices.Compact(built)
	}
	return slices.Compact(plain)
}

func isKustomization(name string) bool {
	return name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization"
}
