package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
)

// varFlags contains the inputs for the render of a PATH: values for ${VAR}, and keys for files that SOPS
// has encrypted.
type varFlags struct {
	values     []string
	file       string
	secretFile string
	keyFiles   []string
}

func (v *varFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&v.values, "var", nil, "value for ${KEY} in the manifests, `KEY=VALUE`; may be repeated")
	c.Flags().StringVar(&v.file, "vars-file", "", "file with values: a YAML mapping, or lines KEY=VALUE; --var wins over it")
	c.Flags().StringVar(&v.secretFile, "secret-vars-file", "", "file with values that are secret: they are never shown; it wins over --vars-file")
	c.Flags().StringArrayVar(&v.keyFiles, "age-key-file", nil, "`FILE` with age identities that decrypt SOPS files; may be repeated (default: SOPS_AGE_KEY_FILE, SOPS_AGE_KEY)")
}

// read returns the values and the keys. Values of flags override values of files. The secret ones are
// redacted in all later output.
func (v *varFlags) read(s surroundings) (workspace.Inputs, error) {
	in := workspace.Inputs{Vars: map[string]string{}}
	var hidden []string
	for _, file := range []string{v.file, v.secretFile} {
		if file == "" {
			continue
		}
		vars, err := targetspec.ReadVars(file)
		if err != nil {
			return workspace.Inputs{}, err
		}
		maps.Copy(in.Vars, vars)
		if file == v.secretFile {
			in.SecretVars, hidden = slices.Sorted(maps.Keys(vars)), slices.Collect(maps.Values(vars))
		}
	}
	s.secrets.Set("variables", secret.New(hidden...))
	for _, assignment := range v.values {
		name, value, ok := strings.Cut(assignment, "=")
		if !ok || !config.ValidVar(name) {
			return workspace.Inputs{}, usage("write it like --var REPLICAS=3", "a --var is not KEY=VALUE")
		}
		in.Vars[name] = value
		in.SecretVars = slices.DeleteFunc(in.SecretVars, func(of string) bool { return of == name })
	}
	err := v.readKeys(s, &in)
	return in, err
}

// readKeys reads the age identities that the flags name or otherwise, like sops itself, the environment.
func (v *varFlags) readKeys(s surroundings, in *workspace.Inputs) error {
	files, text := v.keyFiles, ""
	if len(files) == 0 {
		if file := s.getenv("SOPS_AGE_KEY_FILE"); file != "" {
			files = []string{file}
		}
		text = s.getenv("SOPS_AGE_KEY")
	}
	var hidden []string
	parse := func(from, text string) error {
		ids, err := sops.ParseIdentities(text)
		if err != nil {
			return hinted(fmt.Errorf("read age keys from %s: %w", from, err), "give the file that age-keygen has written")
		}
		in.Identities = append(in.Identities, ids...)
		hidden = append(hidden, strings.Fields(text)...)
		return nil
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read age keys: %w", err)
		}
		if err := parse(file, string(text)); err != nil {
			return err
		}
	}
	if text != "" {
		if err := parse("SOPS_AGE_KEY", text); err != nil {
			return err
		}
	}
	hidden = slices.DeleteFunc(hidden, func(word string) bool { return !strings.HasPrefix(word, "AGE-SECRET-KEY-") })
	s.secrets.Set("age keys", secret.New(hidden...))
	return nil
}

// warnUnused returns warnings about unused variables.
func warnUnused(names []string) (out diag.List) {
	for _, name := range names {
		out = append(out, fleet.UnusedVariable(name))
	}
	return out
}
