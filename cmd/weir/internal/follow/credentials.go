package follow

import (
	"net/url"
	"os"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/secret"
)

// HideCredentials redacts the credentials of sources, forges and gate providers in all output. Each use
// reads the files again, so it hides their current contents. It ignores unreadable files; their users
// report the error.
func HideCredentials(secrets *redact.Registry, c *config.Config) {
	var values []string
	file := func(name string) { values = append(values, content(name)...) }
	for _, s := range c.Sources {
		values = append(values, sourceCredentials(s)...)
	}
	for _, f := range c.Forges {
		file(f.TokenFile)
	}
	for _, name := range append(c.GateProviderFiles(), c.PushFiles()...) {
		if text, err := os.ReadFile(name); err == nil {
			values = append(values, strings.TrimSpace(string(text)))
		}
	}
	for _, name := range append(c.WebhookFiles(), c.Access.Files()...) {
		if text, err := os.ReadFile(name); err == nil {
			values = append(values, strings.Fields(string(text))...) // one per line
		}
	}
	for _, t := range c.Targets {
		for _, name := range t.AgeKeyFiles {
			if text, err := os.ReadFile(name); err == nil {
				for word := range strings.FieldsSeq(string(text)) {
					if strings.HasPrefix(word, "AGE-SECRET-KEY-") {
						values = append(values, word)
					}
				}
			}
		}
	}
	secrets.Set("credentials", secret.New(values...))
	sources := map[string]bool{}
	for _, s := range c.Sources {
		sources[ofSource+s.Name] = true
	}
	secrets.Only(ofSource, sources)
}

// ofSource is the prefix of the owners of hidden credentials for a source.
const ofSource = "source "

// hideSource redacts the current credentials of a source in all output. They may have been replaced since
// the last pass, and a server may repeat them.
func hideSource(secrets *redact.Registry, s config.Source) {
	secrets.Set(ofSource+s.Name, secret.New(sourceCredentials(s)...))
}

// sourceCredentials returns the current contents of the files of a source and the passwords in its
// addresses.
func sourceCredentials(s config.Source) []string {
	var values []string
	for _, name := range append(s.SecretFiles(), s.KeyFiles()...) {
		values = append(values, content(name)...)
	}
	for _, address := range []string{s.URL, s.Proxy} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			password, _ := u.User.Password()
			values = append(values, password)
			if password == "" {
				values = append(values, u.User.Username()) // a token
			}
		}
	}
	return values
}

// content returns the content of a file, or nothing without a name or if it cannot be read.
func content(name string) []string {
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return []string{string(text)}
}
