package config

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
)

// minToken is the minimum length of an access token, in characters.
const minToken = 32

// files checks the files with credentials that the configuration names. A fault of a file is only a
// warning: a file that is mounted late is found at its next use, and until then only its users fail.
func (v *credentialValidator) files() {
	v.config.each(func(at, path, file string) {
		if !ruleOf(path).credential || file == "" || strings.HasPrefix(path, "coordination.") {
			return
		}
		if content, ok := v.credential(at, file); ok && strings.HasPrefix(path, "access.") {
			v.tokens(at, file, content)
		}
	})
	v.coordinationFiles()
	for i, t := range v.config.Targets {
		for j, from := range t.VarsFrom {
			if !from.Secret {
				continue
			}
			for _, file := range from.Files() {
				v.credential(fmt.Sprintf("targets[%d].varsFrom[%d].file", i, j), file)
			}
		}
	}
}

// credential reads a file that no other user should be able to read. ok is false if it cannot be read.
func (v *credentialValidator) credential(at, file string) (content []byte, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		v.found.remark(at, "make the file, and let the user who runs weir read it", "%v", err)
		return nil, false
	}
	if info, err := os.Stat(file); err == nil {
		switch mode := info.Mode().Perm(); {
		case mode&0o022 != 0:
			v.found.remark(at, "chmod 600 "+file, "%s can be written by users other than its owner (mode %04o)", file, mode)
		case mode&0o004 != 0:
			v.found.remark(at, "chmod 600 "+file, "%s can be read by everybody (mode %04o)", file, mode)
		}
	}
	return content, true
}

// tokens checks the tokens in a file, one per line.
func (v *credentialValidator) tokens(at, file string, content []byte) {
	found, lines := false, bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		token := bytes.TrimSpace(lines.Bytes())
		if len(token) == 0 {
			continue
		}
		found = true
		if len(token) < minToken {
			v.found.remark(at, "openssl rand -hex 32 makes a good one", "line %d of %s is too short: a token has at least %d characters. With this file, nobody can log in", n, file, minToken)
		}
	}
	if !found {
		v.found.remark(at, "openssl rand -hex 32 makes a good one", "%s holds no token", file)
	}
}

func (v *findings) remark(at, detail, format string, args ...any) {
	v.report(diag.Warning, at, "credential-file", detail, format, args...)
}
