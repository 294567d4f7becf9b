package config

import (
	"fmt"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Shown returns the active configuration with all defaults, as YAML for readers. It omits empty members.
// Secrets are in files, so only the names of the files are shown. If an address contains a password, Shown
// removes it.
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
