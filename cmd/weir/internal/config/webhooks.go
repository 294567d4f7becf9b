package config

// Notify sends events to a receiver, signed, as they happen.
type Notify struct {
	// URL takes a POST with JSON for each event. Redirects are not followed.
	URL string `yaml:"url"`
	// SecretFile holds what the events are signed with, of at least 16 characters. It
	// is read for each.
	SecretFile string `yaml:"secretFile"`
	// Events are the kinds of events that are sent; all if the list is empty.
	Events []string `yaml:"events"`
}

// WebhookFiles are the files that hold secrets of webhooks, in and out.
func (c *Config) WebhookFiles() []string {
	var out []string
	for _, f := range c.Forges {
		out = append(out, f.WebhookSecretFile)
	}
	for _, n := range c.Notify {
		out = append(out, n.SecretFile)
	}
	return present(out...)
}
