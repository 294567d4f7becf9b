package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/reconciler/coord/dynamo"
)

// TestTheTable: both snippets make the table that weir takes, and the policy allows what it
// does there, and no more.
func TestTheTable(t *testing.T) {
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile("coordination/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var stack struct {
		Resources map[string]struct {
			Type, DeletionPolicy string
			Properties           struct {
				BillingMode, Replicas string
				KeySchema             []struct{ AttributeName, KeyType string }
				AttributeDefinitions  []struct{ AttributeName, AttributeType string }
			}
		}
	}
	lower := regexp.MustCompile(`(?m)^(\s*(?:- )?\{?)([A-Z]\w+):|([{,] ?)([A-Z]\w+):`)
	text := lower.ReplaceAllStringFunc(string(read("table.yaml")), strings.ToLower) // yaml.v3 has keys in lower case
	if err := yaml.Unmarshal([]byte(text), &stack); err != nil {
		t.Fatal(err)
	}
	table := stack.Resources["table"]
	p := table.Properties
	if table.Type != "AWS::DynamoDB::Table" || table.DeletionPolicy != "Retain" || p.BillingMode != "PAY_PER_REQUEST" ||
		len(p.KeySchema) != 2 || p.KeySchema[0].AttributeName != "pk" || p.KeySchema[0].KeyType != "HASH" || p.KeySchema[1].AttributeName != "sk" || p.KeySchema[1].KeyType != "RANGE" {
		t.Errorf("CloudFormation: %+v", table)
	}
	for _, a := range p.AttributeDefinitions {
		if a.AttributeType != "S" {
			t.Errorf("CloudFormation: %+v", a)
		}
	}
	module := string(read("table.tf"))
	for _, want := range []string{`hash_key\s+= "pk"`, `range_key\s+= "sk"`, `billing_mode\s+= "PAY_PER_REQUEST"`, `name = "pk"\s+type = "S"`, `name = "sk"\s+type = "S"`} {
		if !regexp.MustCompile(want).MatchString(module) {
			t.Errorf("Terraform lacks %s", want)
		}
	}
	if strings.Contains(module, "replica") || strings.Count(module, "{") != strings.Count(module, "}") {
		t.Error("Terraform: a table with replicas, or braces that do not match")
	}
	var policy struct{ Statement []struct{ Action []string } }
	if err := json.Unmarshal(read("policy.json"), &policy); err != nil || len(policy.Statement) != 1 || !slices.Equal(policy.Statement[0].Action, dynamo.Actions) {
		t.Errorf("policy: %v %+v, want %v", err, policy, dynamo.Actions)
	}
}
