package config

import (
	"fmt"

	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// Prometheus is the type of a gate provider with Prometheus's API.
const Prometheus = "prometheus"

// GateProvider is a server that gates of FleetRollouts can query. Git contains the name of the
// provider and the query, and never an address or a credential.
type GateProvider struct {
	// Name is the name by which gates refer to the provider.
	Name string `yaml:"name"`
	// Type is prometheus, for Prometheus and servers with the same API, such as Thanos and Mimir.
	Type string `yaml:"type"`
	// URL is the address of the server, without /api/v1/query. weir does not follow redirects.
	URL string `yaml:"url"`
	// TokenFile holds a token that weir sends in a Bearer header. weir reads it for each query.
	TokenFile string `yaml:"tokenFile"`
	// Username is the user for basic authentication, instead of a token.
	Username string `yaml:"username"`
	// PasswordFile holds the password of that user. weir reads it for each query.
	PasswordFile string `yaml:"passwordFile"`
	// CAFile holds PEM certificates of the trusted authorities. Without it weir trusts the system's
	// authorities.
	CAFile string `yaml:"caFile"`
}

func (p *GateProvider) setDefaults(base string) {
	targetspec.Absolute(base, &p.TokenFile, &p.PasswordFile, &p.CAFile)
}

func (v *validator) gateProvider(at string, p *GateProvider) {
	switch {
	case p.TokenFile != "" && p.PasswordFile != "":
		v.found.fault(at+".tokenFile", "bad-value", "keep one of the two", "tokenFile and passwordFile are both set")
	case p.Username != "" && p.PasswordFile == "":
		v.found.fault(at+".username", "bad-value", "name the file with the password as passwordFile", "username is set without passwordFile")
	case p.Username == "" && p.PasswordFile != "":
		v.found.fault(at+".passwordFile", "bad-value", "name the user as username", "passwordFile is set without username")
	}
}

// checkProvider accepts an address without credentials and without a query.
func checkProvider(text string) (wrong, help string) {
	switch u := webAddress(text); {
	case u == nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Sprintf("%q is not an http(s) address of a server", redact(text)), "write it like https://prometheus.example.com"
	case u.User != nil:
		return "the address contains credentials, which must not be in the configuration", "give username and passwordFile, or tokenFile"
	}
	return "", ""
}

// GateProviderFiles returns the files with credentials of gate providers.
func (c *Config) GateProviderFiles() []string {
	var out []string
	for _, p := range c.GateProviders {
		out = append(out, p.TokenFile, p.PasswordFile)
	}
	return present(out...)
}
