package config

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"github.com/weir-gitops/weir/render/diag"
)

// minToken is how many characters a token of access has at least.
const minToken = 32

// files looks at the files with credentials that the configuration names. A fault of a
// file is a warning: a file that is mounted late is found at its next use, and until
// then only what needs it fails.
func (v *validator) files() {
	c := v.config
	for i := range c.Access.Tokens {
		at := fmt.Sprintf("access.tokens[%d].file", i)
		if content, ok := v.credential(at, c.Access.Tokens[i].File); ok {
			v.tokens(at, c.Access.Tokens[i].File, content)
		}
	}
	if f := c.Access.Proxy.SecretFile; f != "" {
		if content, ok := v.credential("access.proxy.secretFile", f); ok {
			v.tokens("access.proxy.secretFile", f, content)
		}
	}
	for i := range c.Sources {
		auth := c.Sources[i].Auth
		for key, file := range map[string]string{"tokenFile": auth.TokenFile, "passwordFile": auth.PasswordFile} {
			if file != "" {
				v.credential(fmt.Sprintf("sources[%d].auth.%s", i, key), file)
			}
		}
	}
	for i := range c.Forges {
		for key, file := range map[string]string{"tokenFile": c.Forges[i].TokenFile, "webhookSecretFile": c.Forges[i].WebhookSecretFile} {
			if file != "" {
				v.credential(fmt.Sprintf("forges[%d].%s", i, key), file)
			}
		}
	}
	for i := range c.Targets {
		for j, from := range c.Targets[i].VarsFrom {
			if !from.Secret {
				continue
			}
			for _, file := range from.Files() {
				v.credential(fmt.Sprintf("targets[%d].varsFrom[%d].file", i, j), file)
			}
		}
	}
}

// credential reads a file that no other user should be able to read. ok is false where
// it cannot be read.
func (v *validator) credential(at, file string) (content []byte, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		v.remark(at, "make the file, and let the user who runs weir read it", "%v", err)
		return nil, false
	}
	if info, err := os.Stat(file); err == nil {
		switch mode := info.Mode().Perm(); {
		case mode&0o022 != 0:
			v.remark(at, "chmod 600 "+file, "%s may be written by others than its owner (mode %04o)", file, mode)
		case mode&0o004 != 0:
			v.remark(at, "chmod 600 "+file, "%s may be read by everybody (mode %04o)", file, mode)
		}
	}
	return content, true
}

// tokens looks at the tokens of a file, one a line.
func (v *validator) tokens(at, file string, content []byte) {
	found, lines := false, bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		token := bytes.TrimSpace(lines.Bytes())
		if len(token) == 0 {
			continue
		}
		found = true
		if len(token) < minToken {
			v.remark(at, "openssl rand -hex 32 makes a good one", "line %d of %s is too short for a token, of at least %d characters: the file lets nobody in", n, file, minToken)
		}
	}
	if !found {
		v.remark(at, "openssl rand -hex 32 makes a good one", "%s holds no token", file)
	}
}

func (v *validator) remark(at, detail, format string, args ...any) {
	v.decoder.faults = append(v.decoder.faults, diag.Diagnostic{
		Severity: diag.Warning, Code: "credential-file", Summary: at + ": " + fmt.Sprintf(format, args...), Detail: detail, Position: v.position(at),
	})
}
