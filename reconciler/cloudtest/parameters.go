package cloudtest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/observed"
)

func parameterContracts() []contract {
	return []contract{
		{"a secure parameter is read with decryption alone", nil, secureParameter},
		{"a parameter that exists is overwritten on request alone, and never with tags", nil, overwriteParameter},
		{"parameters are found by their tags, page by page", nil, taggedParameters},
		{"a deleted parameter is gone", nil, deleteParameter},
		{"the adapter overwrites its own parameters only", nil, ownParameters},
	}
}

// parameter returns a name in the path of the case. After the case, the parameter with this name is deleted.
func (e *env) parameter(suffix string) string {
	e.Helper()
	name := "/" + e.mark + "/" + suffix
	e.Cleanup(func() {
		// The case may have deleted it itself.
		_, _ = e.ssm.DeleteParameter(e.background(), &ssm.DeleteParameterInput{Name: aws.String(name)})
	})
	return name
}

func (e *env) put(name, value string, tags ...types.Tag) (*ssm.PutParameterOutput, error) {
	return e.ssm.PutParameter(e.ctx, &ssm.PutParameterInput{
		Name: aws.String(name), Value: aws.String(value), Type: types.ParameterTypeSecureString, Description: aws.String("of " + value), Tags: tags,
	})
}

func (e *env) value(name string, decrypt bool) string {
	e.Helper()
	out, err := e.ssm.GetParameter(e.ctx, &ssm.GetParameterInput{Name: aws.String(name), WithDecryption: aws.Bool(decrypt)})
	e.must(err)
	e.equal("type", types.ParameterTypeSecureString, out.Parameter.Type)
	return aws.ToString(out.Parameter.Value)
}

func secureParameter(e *env) {
	name := e.parameter("a")
	out, err := e.put(name, "the-value")
	e.must(err)
	e.equal("version", int64(1), out.Version)
	e.equal("value", "the-value", e.value(name, true))
	if e.value(name, false) == "the-value" {
		e.Error("the value is shown without decryption")
	}
}

func overwriteParameter(e *env) {
	name := e.parameter("a")
	tag := types.Tag{Key: aws.String("k"), Value: aws.String("v")}
	_, err := e.put(name, "one", tag)
	e.must(err)
	_, err = e.put(name, "two")
	e.refused(err, "ParameterAlreadyExists")
	e.equal("value", "one", e.value(name, true))
	in := &ssm.PutParameterInput{Name: aws.String(name), Value: aws.String("two"), Type: types.ParameterTypeSecureString, Description: aws.String("of two"), Overwrite: aws.Bool(true), Tags: []types.Tag{tag}}
	_, err = e.ssm.PutParameter(e.ctx, in)
	e.refused(err, "ValidationException")
	in.Tags = nil
	out, err := e.ssm.PutParameter(e.ctx, in)
	e.must(err)
	e.equal("version", int64(2), out.Version)
	e.equal("value", "two", e.value(name, true))
	tags, err := e.ssm.ListTagsForResource(e.ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String(name)})
	e.must(err)
	if len(tags.TagList) != 1 || *tags.TagList[0].Key != "k" || *tags.TagList[0].Value != "v" {
		e.Errorf("tags %+v", tags.TagList)
	}
}

func taggedParameters(e *env) {
	want := map[string]string{}
	for i := range 12 {
		name := e.parameter(fmt.Sprintf("p%02d", i))
		_, err := e.put(name, fmt.Sprint("v", i), types.Tag{Key: aws.String("weir.dev/owner"), Value: aws.String(e.mark)})
		e.must(err)
		want[name] = fmt.Sprint("of v", i)
	}
	other := e.parameter("other")
	_, err := e.put(other, "v")
	e.must(err)
	_, err = e.ssm.AddTagsToResource(e.ctx, &ssm.AddTagsToResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String(other),
		Tags: []types.Tag{{Key: aws.String("weir.dev/owner"), Value: aws.String("another")}}})
	e.must(err)
	got := map[string]string{}
	in := &ssm.DescribeParametersInput{MaxResults: aws.Int32(5), ParameterFilters: []types.ParameterStringFilter{
		{Key: aws.String("tag:weir.dev/owner"), Option: aws.String("Equals"), Values: []string{e.mark}},
	}}
	pages := 0
	for p := ssm.NewDescribeParametersPaginator(e.ssm, in); p.HasMorePages(); pages++ {
		page, err := p.NextPage(e.ctx)
		e.must(err)
		for _, found := range page.Parameters {
			got[aws.ToString(found.Name)] = aws.ToString(found.Description)
		}
	}
	if d := cmp.Diff(want, got); d != "" || pages < 2 {
		e.Errorf("%d pages (-want +got):\n%s", pages, d)
	}
}

func deleteParameter(e *env) {
	name := e.parameter("a")
	_, err := e.put(name, "one")
	e.must(err)
	_, err = e.ssm.DeleteParameter(e.ctx, &ssm.DeleteParameterInput{Name: aws.String(name)})
	e.must(err)
	_, err = e.ssm.DeleteParameter(e.ctx, &ssm.DeleteParameterInput{Name: aws.String(name)})
	e.refused(err, "ParameterNotFound")
	_, err = e.ssm.GetParameter(e.ctx, &ssm.GetParameterInput{Name: aws.String(name), WithDecryption: aws.Bool(true)})
	e.refused(err, "ParameterNotFound")
	_, err = e.ssm.ListTagsForResource(e.ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String(name)})
	e.refused(err, "InvalidResourceId")
}

func ownParameters(e *env) {
	c := e.cloud()
	tags := map[string]string{observed.TagOwner: e.mark, observed.TagTarget: "contract"}
	w := jointoken.Write{Name: e.parameter("a"), Value: "one", Description: "of one", Tags: tags}
	e.must(c.PutParameter(e.ctx, w))
	w.Value, w.Description = "two", "of two"
	e.must(c.PutParameter(e.ctx, w))
	e.equal("value", "two", e.value(w.Name, true))
	found, err := c.TaggedParameters(e.ctx, tags)
	e.must(err)
	e.equal("parameters", []jointoken.Parameter{{Name: w.Name, Description: "of two"}}, found)
	foreign := e.parameter("b")
	_, err = e.put(foreign, "theirs")
	e.must(err)
	err = c.PutParameter(e.ctx, jointoken.Write{Name: foreign, Value: "mine", Description: "x", Tags: tags})
	if !errors.Is(err, jointoken.ErrForeign) || strings.Contains(err.Error(), "mine") {
		e.Errorf("overwriting a foreign parameter: %v", err)
	}
	e.equal("value", "theirs", e.value(foreign, true))
	for range 2 {
		e.must(c.DeleteParameter(e.ctx, w.Name))
	}
}
