"""Special tokens, chat templates and tokenizer classes of both models. Only the target's are used when prompts are made and answers end."""

from collections.abc import Iterator

from builder.checkpoint.chat_template import read_chat_template, writes_token
from builder.checkpoint.remote_code import model_modules, tokenizer_modules
from builder.checkpoint.special_tokens import SpecialToken, SpecialTokens, read_special_tokens
from builder.checkpoint.tokenizer import Tokenizer
from builder.errors import Finding
from builder.planner.checks.models import Model, capital

OTHER_NAMES = {"pad_token": "pad", "unk_token": "unknown"}


def check_special_tokens(target: Model, draft: Model) -> Iterator[Finding]:
    """What the draft was trained to read at the beginning and to write at the end, against what the target's prompts hold."""
    if target.tokenizer is None or draft.tokenizer is None:
        return
    left, right = _special(target, target.tokenizer), _special(draft, draft.tokenizer)
    yield from _begin(target, draft, left, right)
    yield from _end(target, draft, left, right)
    yield from _others(target, draft, left, right)
    yield from _templates(target, draft)


def check_tokenizer_files(model: Model) -> Iterator[Finding]:
    """Contradictions inside one checkpoint's tokenizer files, and a begin token that stands twice."""
    if model.tokenizer is None:
        return
    special = _special(model, model.tokenizer)
    for name, token in special.unknown.items():
        message = (
            f"tokenizer_config.json of {model} sets {name} to {token.text!r}, which is no entry of tokenizer.json; "
            "transformers would add it behind the last id, which the model may not have."
        )
        fix = f"set {name} in tokenizer_config.json to a token of tokenizer.json"
        yield Finding("CKPT-SPECIAL-TOKEN", "warning", message, model.field, token.text, "a token of the vocabulary", fix)
    yield from _added_tokens(model, model.tokenizer)
    if model.role == "target":
        yield from _begin_twice(model, model.tokenizer, special.named.get("bos_token"))


def check_remote_code(model: Model) -> Iterator[Finding]:
    """Code that the checkpoint brings: refused where serving would need it, noted where it does not."""
    settings = model.tokenizer.settings if model.tokenizer else {}
    modules = tokenizer_modules(settings, model.checkpoint.config)
    if modules and model.role == "target":
        message = (
            f"The tokenizer class of {model} is code of the checkpoint ({', '.join(modules)}), "
            "and the served models run no code of a checkpoint."
        )
        fix = "remove auto_map from tokenizer_config.json and set tokenizer_class: PreTrainedTokenizerFast; tokenizer.json holds the rest"
        yield Finding("CKPT-REMOTE-CODE", "error", message, model.field, ", ".join(modules), "a class of transformers", fix)
    modules = model_modules(model.checkpoint.config)
    if modules:
        message = (
            f"config.json of {model} names code of its own ({', '.join(modules)}); it is not run: "
            f"the lane's implementation of {model.checkpoint.model_type or 'the model'} is built."
        )
        found, fix = ", ".join(modules), "compare the built engine with the checkpoint: the accuracy gate does"
        yield Finding("CKPT-MODEL-CODE", "info", message, model.field, found, "an implementation of the lane's", fix)


def _special(model: Model, tokenizer: Tokenizer) -> SpecialTokens:
    return read_special_tokens(tokenizer, model.checkpoint.config, model.checkpoint.end_ids)


def _begin(target: Model, draft: Model, left: SpecialTokens, right: SpecialTokens) -> Iterator[Finding]:
    needed, found = left.named.get("bos_token"), right.named.get("bos_token")
    if needed is None or found is None or needed.token_id == found.token_id:
        return
    message = (
        f"Texts begin with token {needed} for {target} and with {found} for {draft}; the target's is used for both, "
        "so the draft reads beginnings that it was not trained on and fewer of its tokens are accepted."
    )
    fix = "take a draft of the target's own series; the acceptance gate will judge"
    yield Finding("PAIR-BEGIN-TOKEN", "warning", message, draft.field, str(found), str(needed), fix)


def _end(target: Model, draft: Model, left: SpecialTokens, right: SpecialTokens) -> Iterator[Finding]:
    if left.end == right.end:
        return
    needed, found = _listed(left.end), _listed(right.end)
    message = f"Answers of {target} end with {needed}, those of {draft} with {found}; the target's end tokens are used for both."
    yield Finding("PAIR-END-TOKENS", "info", message, draft.field, found, needed, "nothing to do")


def _others(target: Model, draft: Model, left: SpecialTokens, right: SpecialTokens) -> Iterator[Finding]:
    pairs = [(word, left.named.get(name), right.named.get(name)) for name, word in OTHER_NAMES.items()]
    different = [(word, a, b) for word, a, b in pairs if a is not None and b is not None and a.token_id != b.token_id]
    if not different:
        return
    shown = "; ".join(f"{word} is {a} for {target}, {b} for {draft}" for word, a, b in different)
    needed, found = (", ".join(f"{word} {side}" for word, side in sides) for sides in _sides(different))
    message = f"Special tokens differ that neither model generates from: {shown}."
    yield Finding("PAIR-SPECIAL-TOKENS", "info", message, draft.field, found, needed, "nothing to do: the target's are used")


def _sides(different: list[tuple[str, SpecialToken, SpecialToken]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    return [(word, str(a)) for word, a, _ in different], [(word, str(b)) for word, _, b in different]


def _templates(target: Model, draft: Model) -> Iterator[Finding]:
    left, right = (read_chat_template(model.checkpoint.path) for model in (target, draft))
    if left == right:
        return
    if not left:
        message = (
            f"{capital(draft)} has a chat template and {target} has none: only the target's files are used, so chat requests are refused."
        )
        found, needed, fix = (
            "only the draft's",
            "the target's",
            "copy a chat template that the target was trained with beside its tokenizer",
        )
        yield Finding("PAIR-CHAT-TEMPLATE", "warning", message, target.field, found, needed, fix)
    elif not right:
        message = (
            f"{capital(target)} has a chat template and {draft} has none: it drafts from prompts in a form that it was not trained on, "
            "and fewer of its tokens are accepted."
        )
        fix = "take the instruction-tuned model of the draft's series; the acceptance gate will judge"
        yield Finding("PAIR-CHAT-TEMPLATE", "warning", message, draft.field, "no chat template", "the target's", fix)
    else:
        message = f"The chat templates of {target} and {draft} differ; the target's is used for both."
        yield Finding("PAIR-CHAT-TEMPLATE", "info", message, draft.field, "another template", "the target's", "nothing to do")


def _added_tokens(model: Model, tokenizer: Tokenizer) -> Iterator[Finding]:
    """tokenizer_config.json lists added tokens again; a text that differs there wins in some loaders and loses in others."""
    listed = {int(i): str(token["content"]) for i, token in (tokenizer.settings.get("added_tokens_decoder") or {}).items()}
    text_of = tokenizer.vocabulary.text_of
    different = sorted(i for i, text in listed.items() if text_of.get(i) != text)
    if not different:
        return
    first = different[0]
    message = (
        f"The tokenizer files of {model} contradict each other on {len(different)} added tokens: id {first} is {text_of.get(first)!r} "
        f"in tokenizer.json and {listed[first]!r} in tokenizer_config.json; tokenizer.json is compared and served."
    )
    fix = "correct added_tokens_decoder in tokenizer_config.json"
    yield Finding("CKPT-ADDED-TOKENS", "warning", message, model.field, listed[first], str(text_of.get(first)), fix)


def _begin_twice(target: Model, tokenizer: Tokenizer, begin: SpecialToken | None) -> Iterator[Finding]:
    if begin is None or begin.token_id is None:
        return
    adds = begin.token_id in tokenizer.begin_ids or bool(tokenizer.settings.get("add_bos_token"))
    if adds and writes_token(read_chat_template(target.checkpoint.path), "bos_token", begin.text):
        message = (
            f"The tokenizer of {target} puts the begin token {begin} in front of every text by itself, "
            "and its chat template writes it too; the served preprocessing adds it once."
        )
        fix = "nothing to do; a client that applies the template itself may send the text with or without the token"
        yield Finding("CKPT-BEGIN-TWICE", "info", message, target.field, "two begin tokens", "one begin token", fix)


def _listed(tokens: tuple[SpecialToken, ...]) -> str:
    return ", ".join(map(str, tokens)) or "no token"
