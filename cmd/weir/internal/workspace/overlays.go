package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Overlays returns the overlays of a PATH, sorted by name. A PATH has overlays if it contains no manifests,
// but a directory "overlays" whose directories have kustomizations. For any other path, the result is nil.
func Overlays(path string) (dirs []string) {
	own, err := os.ReadDir(path)
	if err != nil || slices.ContainsFunc(own, func(e os.DirEntry) bool { return !e.IsDir() && holdsManifests(e.Name()) }) {
		return nil
	}
	below, err := os.ReadDir(filepath.Join(path, "overlays"))
	if err != nil {
		return nil
	}
	for _, e := range below {
		dir := filepath.Join(path, "overlays", e.Name())
		files, err := os.ReadDir(dir)
		if err == nil && slices.ContainsFunc(files, func(f os.DirEntry) bool { return isKustomization(f.Name()) }) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func holdsManifests(name string) bool {
	return isKustomization(name) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}
