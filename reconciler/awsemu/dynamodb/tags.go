package dynamodb

import (
	"strings"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

const maxTags = 50

type tag struct{ Key, Value string }

// tag adds tags. After an error the tags are unchanged.
func (t *Table) tag(tags []tag) error {
	all := t.Tags.Clone()
	for _, one := range tags {
		fault := world.TagFault(one.Key, one.Value)
		if strings.ContainsFunc(one.Key+one.Value, func(c rune) bool {
			return !unicode.IsLetter(c) && !unicode.IsSpace(c) && !unicode.IsNumber(c) && !strings.ContainsRune("+-=._:/@", c)
		}) {
			fault = "Tags consist of letters, spaces, numbers and +-=._:/@"
		}
		if fault != "" {
			return attr.Invalid("One or more parameter values were invalid: %s", fault)
		}
		all.Set(one.Key, one.Value)
	}
	if all.UserCount() > maxTags {
		return attr.Invalid("One or more parameter values were invalid: Too many tags: a table can have %d", maxTags)
	}
	t.Tags = all
	return nil
}
