package app

import (
	"net/url"
	"os"
	"strings"

	"github.com/weir-gitops/weir/render/secret"
)

// hideCredentials has the credentials of sources and forges kept out of all
// output: the files are read at each use, so what is in them now is what counts.
// A file that cannot be read holds nothing to hide; its user says what is wrong.
func (a *App) hideCredentials() {
	var values []string
	file := func(name string) {
		if name == "" {
			return
		}
		if text, err := os.ReadFile(name); err == nil {
			values = append(values, string(text))
		}
	}
	for _, s := range a.gen.config.Sources {
		for _, name := range append(s.SecretFiles(), s.KeyFiles()...) {
			file(name)
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
	}
	for _, f := range a.gen.config.Forges {
		file(f.TokenFile)
	}
	for _, name := range a.gen.config.WebhookFiles() {
		if text, err := os.ReadFile(name); err == nil {
			values = append(values, strings.Fields(string(text))...) // one a line
		}
	}
	for _, t := range a.gen.config.Targets {
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
	a.o.Secrets.Set("credentials", secret.New(values...))
}
