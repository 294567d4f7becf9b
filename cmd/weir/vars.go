package main

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// varFlags are values for ${VAR} on the command line.
type varFlags struct {
	values []string
	file   string
}

func (v *varFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&v.values, "var", nil, "value for ${KEY} in the manifests, KEY=VALUE; may be repeated")
	c.Flags().StringVar(&v.file, "vars-file", "", "file with values: a YAML mapping, or lines KEY=VALUE; --var wins over it")
}

// read returns the values: those of the file, and over them those of the flags.
func (v *varFlags) read() (map[string]string, error) {
	out := map[string]string{}
	if v.file != "" {
		vars, err := config.ReadVars(v.file)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, vars)
	}
	for _, assignment := range v.values {
		name, value, ok := strings.Cut(assignment, "=")
		if !ok || !config.ValidVar(name) {
			return nil, usage("write it like --var REPLICAS=3", "a --var is not KEY=VALUE")
		}
		out[name] = value
	}
	return out, nil
}
