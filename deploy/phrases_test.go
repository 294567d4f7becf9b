package deploy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The limits of phrases that readers stumble over. They go down, never up.
const (
	mostPhrases     = 20 // lines of code and pages with one of phrases
	mostDocComments = 50 // doc comments of the form of riddles
)

// phrases are replaced by plain ones, such as "is reported", "uses", "failed" or "all other pools".
var phrases = regexp.MustCompile(`(?i)\b(?:(?:is|are|was|were) told|told (?:as|by|of|once|that)|goes by|go by|of which|in vain|(?:came|comes|come) of (?:it|them|that)|` +
	`beside each other|(?:made|begins?|begun|looks?|reads?) anew|heed(?:s|ed)?|for ever|each (?:\d+ )?(?:seconds?|minutes?|time)|who asks|whoever|there (?:is|are) none|` +
	`nobody knows|changes? of hands|strays?|shall)\b`)

// riddles are doc comments that name a thing by a clause instead of a noun.
var riddles = regexp.MustCompile(`^// \w+ (?:is|are) (?:what|who|which|since|where|when|how|whether)\b`)

// TestPlainEnglish counts the lines with such phrases, without tests.
func TestPlainEnglish(t *testing.T) {
	var withPhrases, withRiddles []string
	err := filepath.WalkDir("..", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || e.Name() != ".." && strings.HasPrefix(e.Name(), ".")) {
			return fs.SkipDir
		}
		isGo := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if e.IsDir() || !isGo && !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(name) //nolint:gosec // a file of the project
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			at := fmt.Sprintf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
			if phrases.MatchString(line) {
				withPhrases = append(withPhrases, at)
			}
			if isGo && riddles.MatchString(line) {
				withRiddles = append(withRiddles, at)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		found []string
		most  int
	}{"phrases": {withPhrases, mostPhrases}, "doc comments": {withRiddles, mostDocComments}} {
		t.Logf("%d lines with such %s", len(c.found), what)
		if len(c.found) > c.most {
			t.Errorf("%d lines have %s that readers stumble over, and %d may. Write plain ones:\n%s", len(c.found), what, c.most, strings.Join(c.found, "\n"))
		}
	}
}
