package config

import (
	"fmt"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Shown returns the configuration in force, with every default filled in, as YAML for people to
// read. Empty members are left out. Secrets are in files: their names are shown, their contents
// never. If an address holds a password nevertheless, it is left out too.
func (c *Config) Shown() (string, error) {
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(language.Show(*c, "", withoutPassword)); err != nil {
		return "", fmt.Errorf("show configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return "", fmt.Errorf("show configuration: %w", err)
	}
	return out.String(), nil
}

// withoutPassword removes a user with a password, the query and the fragment from an address.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return text
	}
	if _, has := u.User.Password(); has {
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
