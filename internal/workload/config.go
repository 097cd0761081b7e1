package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// twoMatrices are the model types of transformers whose feed-forward has two matrices; others have three (gated).
var twoMatrices = []string{"gpt2", "gpt_neo", "gpt_neox", "gptj", "gpt_bigcode", "opt", "bloom", "falcon", "phi", "starcoder2", "mpt", "codegen"}

// hfConfig are the fields of a config.json that decide sizes, with the names that older models have for them.
type hfConfig struct {
	Type          string    `json:"model_type"`
	Architectures []string  `json:"architectures"`
	Text          *hfConfig `json:"text_config"` // of models that see as well

	Hidden int `json:"hidden_size"`
	NEmbd  int `json:"n_embd"`
	DModel int `json:"d_model"`
	Layers int `json:"num_hidden_layers"`
	NLayer int `json:"n_layer"`
	NLays  int `json:"n_layers"`
	Heads  int `json:"num_attention_heads"`
	NHead  int `json:"n_head"`
	NHeads int `json:"n_heads"`

	KVHeads int `json:"num_key_value_heads"`
	HeadDim int `json:"head_dim"`

	FeedForward int `json:"intermediate_size"`
	NInner      int `json:"n_inner"`
	FFNDim      int `json:"ffn_dim"`
	Vocabulary  int `json:"vocab_size"`

	Experts      int   `json:"num_experts"`
	LocalExperts int   `json:"num_local_experts"`
	Routed       int   `json:"n_routed_experts"`
	Active       int   `json:"num_experts_per_tok"`
	ExpertSize   int   `json:"moe_intermediate_size"`
	LatentRank   int   `json:"kv_lora_rank"`
	Tied         *bool `json:"tie_word_embeddings"`
	Bias         *bool `json:"attention_bias"`
}

// FromConfig reads the config.json of a Hugging Face model. Parameters are counted from the shape, unless given (above 0).
// The second result says what was assumed. The error of something else says what it is and what is missing.
func FromConfig(raw []byte, name string, parameters float64) (Model, []string, error) {
	var c hfConfig
	if err := json.Unmarshal(raw, &c); err != nil {
		return Model{}, nil, fmt.Errorf("is no config.json of a model: %w", misfit(err))
	}
	var assumed []string
	if c.Text != nil && c.Hidden == 0 {
		assumed = append(assumed, "only the text model is counted, not what sees or hears")
		tied := c.Tied
		if c = *c.Text; c.Tied == nil {
			c.Tied = tied
		}
	}
	if err := c.complete(); err != nil {
		return Model{}, nil, err
	}
	m := c.model(name)
	if m.HeadDim == 0 {
		if m.Hidden%m.Heads != 0 {
			return Model{}, nil, fmt.Errorf("hidden_size %d does not divide among %d heads, and head_dim is not given", m.Hidden, m.Heads)
		}
		m.HeadDim = m.Hidden / m.Heads
	}
	if m.Parameters = parameters; parameters <= 0 {
		m.Parameters = m.Count()
	}
	if m.Gated && !gatedKnown(c.Type) {
		assumed = append(assumed, fmt.Sprintf("model_type %q is not known here: its feed-forward is counted with three matrices", clip(c.Type)))
	}
	return m, assumed, m.Validate()
}

// misfit says of a value of the wrong kind, in the words of JSON, which it is and what belongs there; other errors stay as they are.
func misfit(err error) error {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Field == "":
		return fmt.Errorf("it is a JSON %s, not an object", e.Value)
	case e.Type.Kind() == reflect.Int:
		return fmt.Errorf("%s is a JSON %s; a whole number belongs there", e.Field, e.Value)
	}
	return fmt.Errorf("%s cannot be a JSON %s", e.Field, e.Value)
}

// gatedTypes are model types known to have a gated feed-forward.
var gatedTypes = []string{"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3", "gemma3_text", "phi3", "internlm2", "olmo", "olmo2", "cohere", "granite", "stablelm", "baichuan", "yi", "smollm3", "qwen2_5_vl_text", "qwen2_vl", "qwen2_5_vl"}

func gatedKnown(kind string) bool { return slices.Contains(gatedTypes, kind) }

// complete says which fields are missing.
func (c hfConfig) complete() error {
	if c.LatentRank > 0 {
		return fmt.Errorf("has kv_lora_rank: multi-head latent attention is not among what fit can count")
	}
	var missing []string
	for _, x := range []struct {
		name  string
		value int
	}{{"hidden_size", first(c.Hidden, c.NEmbd, c.DModel)}, {"num_hidden_layers", first(c.Layers, c.NLayer, c.NLays)}, {"num_attention_heads", first(c.Heads, c.NHead, c.NHeads)}, {"vocab_size", c.Vocabulary}} {
		if x.value == 0 {
			missing = append(missing, x.name)
		}
		if x.value < 0 {
			return fmt.Errorf("%s is %d", x.name, x.value)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("is no config.json of a language model: it has no %s", strings.Join(missing, ", "))
	}
	return nil
}

func (c hfConfig) model(name string) Model {
	m := Model{
		Name: name, Hidden: first(c.Hidden, c.NEmbd, c.DModel), Layers: first(c.Layers, c.NLayer, c.NLays), Heads: first(c.Heads, c.NHead, c.NHeads),
		HeadDim: c.HeadDim, FeedForward: first(c.FeedForward, c.NInner, c.FFNDim), Vocabulary: c.Vocabulary, Source: "config.json",
		Experts: first(c.LocalExperts, c.Experts, c.Routed), Gated: !slices.Contains(twoMatrices, c.Type),
		QKNorm: c.Type == "qwen3" || c.Type == "qwen3_moe",
	}
	m.KVHeads = first(c.KVHeads, m.Heads)
	if m.FeedForward == 0 {
		m.FeedForward = 4 * m.Hidden
	}
	if m.Experts > 0 {
		m.ActiveExperts = max(c.Active, 1)
		m.FeedForward = first(c.ExpertSize, m.FeedForward)
	}
	m.QKVBias = c.Type == "qwen2" || c.Type == "qwen2_moe" || c.Bias != nil && *c.Bias
	m.Tied = c.Tied != nil && *c.Tied || c.Tied == nil && tiedUnsaid(c.Type)
	return m
}

// tiedUnsaid says whether a type ties head and embedding when its file does not say: transformers leaves out what is the
// default of the type.
func tiedUnsaid(kind string) bool {
	return kind == "gpt2" || kind == "opt" || kind == "bloom" || kind == "falcon" || strings.HasPrefix(kind, "gemma")
}

// first is the first value that is given.
func first(values ...int) int {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}

func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
