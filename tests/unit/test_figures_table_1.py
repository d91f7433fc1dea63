from shape_of_learning.figures.output import paper_function

BLOOM = {
    "model": "Bloom-3B",
    "layers": 30,
    "hidden_size": 2560,
    "attention_heads": 32,
    "vocabulary": 250880,
    "batch_size": 512,
    "learning_rate": 0.00016,
    "training_tokens": 341_000_000_000,
}
training_recipes = paper_function("shape_of_learning:training_recipes")


def test_the_table_holds_the_numbers_as_they_were_given():
    table, _ = training_recipes([BLOOM, BLOOM | {"model": "other", "layers": 7}])
    first, second = table.to_dict("records")
    assert first == BLOOM
    assert (second["model"], second["layers"]) == ("other", 7)


def test_the_markdown_is_written_for_people():
    _, markdown = training_recipes([BLOOM])
    heading, rule, row = markdown.splitlines()
    assert heading.startswith("| Model | Layers | Hidden size | Attention heads | Vocabulary |")
    assert rule.count("|") == heading.count("|")
    assert row == "| Bloom-3B | 30 | 2,560 | 32 | 250,880 | 512 | 1.6e-4 | 341B |"
