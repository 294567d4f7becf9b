package config

import "github.com/weir-gitops/weir/reconciler/fleet"

// Fleet returns the part of the configuration for package fleet. embedded is the URL of the embedded AWS.
func (c *Config) Fleet(embedded string) *fleet.Config {
	out := &fleet.Config{Instance: c.Instance, Targets: c.Targets, Limits: c.Limits, KeepVersions: int32(c.KeepVersions), Endpoint: c.AWS.Endpoint}
	if c.AWS.Endpoint == EmbeddedEndpoint {
		out.Endpoint = embedded
	}
	for _, s := range c.Sources {
		out.Sources = append(out.Sources, s.Name)
	}
	return out
}
