"""The world: its meanings, languages and generators, made from the settings."""

from functools import cached_property
from typing import Any

from demo_world.language import Language
from demo_world.lexicon import Lexicons
from demo_world.meanings import Concepts, Names
from demo_world.reasoning import Inference, Reading
from demo_world.render import Renderer
from demo_world.sentences import Events, Grammar


class World:
    """The meanings, languages and generators that the settings describe. Languages are made when first used."""

    def __init__(self, settings: dict[str, Any], scale: str = "demo") -> None:
        self.settings, self.scale, self.seed = settings, scale, settings["seed"]
        self.concepts = Concepts(settings["concepts"], self.seed)
        self.names = Names(settings["concepts"]["names"], self.seed)
        self.lexicons = Lexicons(settings, self.concepts)
        self._renderers: dict[str, Renderer] = {}

    def renderer(self, code: str) -> Renderer:
        """The renderer of a language."""
        if code not in self._renderers:
            self._renderers[code] = Renderer(Language(code, self.lexicons))
        return self._renderers[code]

    def grammar(self, domain: str) -> Grammar:
        """The grammar of a domain."""
        return Grammar(self.concepts, self.names, self.settings["domains"][domain])

    @cached_property
    def events(self) -> Events:
        """Events for inference and questions."""
        return Events(self.concepts, self.grammar("news"))

    @cached_property
    def inference(self) -> Inference:
        """Natural language inference."""
        return Inference(self.concepts, self.events, self.settings["nli"], self.seed)

    @cached_property
    def reading(self) -> Reading:
        """Question answering."""
        return Reading(self.events, self.settings["qa"], self.seed)
