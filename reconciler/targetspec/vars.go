package targetspec

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/weir-gitops/weir/render/values"
)

// maxVars is the size of the largest file with values that is read.
const maxVars = 4 << 20

// ReadVars reads a file with values for variables: a YAML mapping of texts, or
// lines KEY=VALUE with blank lines and lines that start with # between them.
func ReadVars(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	if len(content) > maxVars {
		return nil, fmt.Errorf("read variables from %s: the file has %d bytes, more than %d", file, len(content), maxVars)
	}
	found, err := values.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read variables from %s: %w", file, err)
	}
	vars := make(map[string]string, len(found))
	for name, v := range found {
		vars[name] = v.Text
	}
	return vars, nil
}

// ReadOnce is ReadVars that reads no file twice.
func ReadOnce() func(file string) (map[string]string, error) {
	type answer struct {
		vars map[string]string
		err  error
	}
	have := map[string]answer{}
	return func(file string) (map[string]string, error) {
		a, known := have[file]
		if !known {
			a.vars, a.err = ReadVars(file)
			have[file] = a
		}
		return a.vars, a.err
	}
}

// Values are a target's values for variables.
type Values struct {
	Vars map[string]string
	// Secret are the names, sorted, of those that are secret.
	Secret []string
}

// Values are the target's values for variables: those of its files, the later
// over the earlier, and over them those of the configuration itself. Files of the
// repository are read where it is rendered, and a file whose name still holds a
// placeholder is passed over.
func (t *Target) Values(read func(file string) (map[string]string, error)) (Values, error) {
	v := Values{Vars: map[string]string{}}
	secret := map[string]bool{}
	for _, from := range t.VarsFrom {
		if from.Path != "" || Placeholder.MatchString(from.File) {
			continue
		}
		vars, err := read(from.File)
		if err != nil {
			return Values{}, fmt.Errorf("%s: %w; correct the file, or its name in varsFrom", from.At, err)
		}
		for name, value := range vars {
			v.Vars[name], secret[name] = value, from.Secret
		}
	}
	for name, value := range t.Vars {
		v.Vars[name], secret[name] = value, false
	}
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		if secret[name] {
			v.Secret = append(v.Secret, name)
		}
	}
	return v, nil
}

// Hidden are all values of the files that are marked as secret, of whichever directory.
func (t *Target) Hidden(read func(file string) (map[string]string, error)) []string {
	var out []string
	for _, from := range t.VarsFrom {
		for _, file := range from.Files() {
			if !from.Secret {
				break
			}
			if vars, err := read(file); err == nil { // else who uses it says so
				out = append(out, slices.Collect(maps.Values(vars))...)
			}
		}
	}
	return out
}

// ValuePaths are the files of the repository that hold values for the target, which is
// the directory or the file at a path: below the source's root, the later over the
// earlier. The configuration's own values win over them all, so that no commit changes
// them.
func (t *Target) ValuePaths(of string) []string {
	var out []string
	dir := of
	if isFile(of) {
		dir = path.Dir(of)
	}
	for _, from := range t.VarsFrom {
		if from.Path != "" {
			out = append(out, path.Join(dir, from.Path))
		}
	}
	return out
}
