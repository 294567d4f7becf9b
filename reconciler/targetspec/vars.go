package targetspec

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/weir-gitops/weir/render/values"
)

// maxVars bounds the size of a file with values, in bytes.
const maxVars = 4 << 20

// ReadVars reads a file with values for variables: a YAML mapping of strings, or lines KEY=VALUE. It ignores
// blank lines and lines that start with #.
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

// ReadOnce returns a function like ReadVars that reads each file only once.
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

// Values contains a target's values for variables.
type Values struct {
	Vars map[string]string
	// Secret lists the names of secret variables, sorted.
	Secret []string
}

// Values returns the target's values for variables. A later file wins over an earlier one, and vars win over
// files. Values skips files of the repository, which are read during the render, and files whose names still
// have a placeholder.
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

// Hidden returns all values of the files that are marked as secret, for all directories.
func (t *Target) Hidden(read func(file string) (map[string]string, error)) []string {
	var out []string
	for _, from := range t.VarsFrom {
		for _, file := range from.Files() {
			if !from.Secret {
				break
			}
			if vars, err := read(file); err == nil { // otherwise the user of the file reports the error
				out = append(out, slices.Collect(maps.Values(vars))...)
			}
		}
	}
	return out
}

// ValuePaths returns the files of the repository with values for the target at the path of. The paths are
// relative to the source's root, and a later file wins over an earlier one. The configuration's own values
// win over all of them, so that no commit changes them.
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
